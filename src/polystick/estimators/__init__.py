"""The faces: scikit-learn's contract, validation, predictions. The maths is in `models`."""
