"""Named formats, patterns and tags: from the dimensions and dtype of an array to its layout."""

from tilejit.layout.formats.description import FormatDescription, describe_format
from tilejit.layout.formats.registry import formats, register_format, unregister_format

__all__ = ["FormatDescription", "describe_format", "formats", "register_format", "unregister_format"]
