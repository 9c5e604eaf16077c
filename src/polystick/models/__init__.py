"""The maths: one file is one page of the paper. Models hold hyperparameters, never data or chains."""
