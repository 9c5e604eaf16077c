"""Commands of the command line, one to a file; `polystick.cli` gathers them."""
