"""By what a file begins with: kinds of files that somebody may give in the place of text."""

__all__ = ["refuse_other_kinds"]

_UTF_16 = "text in UTF-16; save it in UTF-8, for example by iconv -f UTF-16 -t UTF-8"
_SIGNS = {
    b"PK\x03\x04": "an Excel workbook or another zip archive; save the table as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the table as CSV",
    b"\x1f\x8b": "packed by gzip; let its name end in .gz",
    b"BZh": "packed by bzip2; let its name end in .bz2",
    b"\xfd7zXZ": "packed by xz; let its name end in .xz",
    b"PAR1": "a parquet file; let its name end in .parquet",
    b"\x93NUMPY": "an array of NumPy; save it by np.savez, as NPZ",
    b"%PDF": "a PDF file; turn it into text",
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
}
_PACKED = (".gz", ".bz2", ".xz")
_A_FEW = 64  # bytes


def refuse_other_kinds(path):
    """Raise if a file that should be text is of a kind that begins otherwise; packed ones are not opened."""
    if path.suffix in _PACKED:
        return
    with open(path, "rb") as file:
        begin = file.read(_A_FEW)
    for sign, what in _SIGNS.items():
        if begin.startswith(sign):
            raise ValueError(f"{path} must be text in UTF-8; it is {what}")
    if len(begin) > 3 and (not any(begin[::2]) or not any(begin[1::2])):
        raise ValueError(f"{path} must be text in UTF-8; it is {_UTF_16}")
