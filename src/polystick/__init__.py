"""Dependent multinomial models made easy: stick breaking with the Pólya-gamma augmentation."""

__version__ = "0.1.0.dev0"
