"""Where results go."""

import click

__all__ = ["FOLDER"]


class Folder(click.Path):
    """A folder that has a name: none at all would be the one that the shell is in."""

    name = "folder"

    def convert(self, value, param, ctx):
        if value == "":
            self.fail("it must have a name; got none, as of a variable that is not set", param, ctx)
        return super().convert(value, param, ctx)


FOLDER = Folder(file_okay=False)
