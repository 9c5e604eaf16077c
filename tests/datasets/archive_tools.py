"""Archives of texts, as they are downloaded, for tests."""

import io
import tarfile

ARTICLE = "<DOC>\n<DOCNO> {} </DOCNO>\n<TEXT>\n {}\n</TEXT>\n</DOC>\n"


def pack(path, files):
    """Write texts by name into a compressed archive."""
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            content = content.encode("latin-1")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
