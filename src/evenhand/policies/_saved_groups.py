"""Groups as plain data, for saved policies and logs."""

from __future__ import annotations

from typing import Any

from evenhand.errors import InputError
from evenhand.groups import Groups


def plain_groups(groups: Groups) -> dict[str, Any]:
    """Groups as plain data; attributes only if there are any, as in files of older versions.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.policies._saved_groups import plain_groups, rich_groups
        >>> plain_groups(eh.Groups(["F", "M"]))
        {'labels': ['F', 'M'], 'sensitive': None}
        >>> groups = eh.Groups.per_round(2, {"sex": ["F", "M"]})
        >>> rich_groups(plain_groups(groups)) == groups
        True
    """
    plain: dict[str, Any] = {"labels": list(groups.labels), "sensitive": groups.sensitive}
    if groups.changes:
        plain["per_round"] = {item.name: list(item.levels) for item in groups.attributes}
    elif groups.attributes:
        names = [attribute.name for attribute in groups.attributes]
        columns = zip(*groups._levels, strict=True)
        plain["attributes"] = dict(zip(names, map(list, columns), strict=True))
    return plain


def rich_groups(plain: dict[str, Any]) -> Groups:
    """The groups that `plain_groups` described."""
    labels, sensitive = plain["labels"], plain["sensitive"]
    tables = [plain[name] for name in ("per_round", "attributes") if name in plain]
    named = [] if sensitive is None else [sensitive]
    named += [level for table in tables for levels in table.values() for level in levels]
    if not isinstance(labels, list) or not all(isinstance(item, str) for item in [*labels, *named]):
        raise InputError("the saved policy is damaged: groups have labels that are not text")
    if "per_round" in plain:
        return Groups.per_round(len(labels), plain["per_round"])
    if "attributes" in plain:
        return Groups.of_attributes(plain["attributes"], sensitive)
    return Groups(labels, sensitive)
