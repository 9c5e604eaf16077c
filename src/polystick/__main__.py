"""`python -m polystick` is the command `polystick`."""

from polystick.cli import main

if __name__ == "__main__":
    main()
