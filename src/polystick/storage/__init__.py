"""Fitted models in files of numbers and words: nothing in them is a program, and nothing is taken on trust.

archive       a zip of .npy and JSON with a checksum for each part; sizes are checked before memory is taken
values        numbers, texts, arrays and containers of them as JSON that names arrays, and back
tables        what pandas and xarray hold, likewise
known         the closed list of classes that a file may name
formulas      what formulaic has learned of covariates; and which formulas call nothing but known functions
model_file    `save` and `load`
"""

from polystick.storage.archive import ModelFileError
from polystick.storage.formulas import refuse_calls
from polystick.storage.model_file import load, save

__all__ = ["ModelFileError", "load", "refuse_calls", "save"]
