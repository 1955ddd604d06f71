"""Formats with a name, patterns and tags: from an array's dimensions and dtype to its layout."""

from tilejit.layout.formats.registry import describe_format, format_parameters, formats, register_format

__all__ = ["describe_format", "format_parameters", "formats", "register_format"]
