"""Dates with names of months in German, French, Italian, Spanish or Dutch, rewritten in English for the parser."""

from __future__ import annotations

import polars as pl

__all__ = ["MONTHS", "with_english_months"]

_NAMES = (  # without accents: in full, then abbreviated; for January to December
    "januar janner janvier gennaio enero januari january jan janv gen ene",
    "februar feber fevrier febbraio febrero februari february feb febr fevr fev",
    "marz mars marzo maart march mar mrz mrt maer",
    "april avril aprile abril apr avr abr",
    "mai maggio mayo mei may mag",
    "juni juin giugno junio june jun giu",
    "juli juillet luglio julio july jul juil lug",
    "august aout agosto augustus aug ago",
    "september septembre settembre septiembre setiembre sep sept set",
    "oktober octobre ottobre octubre october okt oct ott",
    "november novembre noviembre nov",
    "dezember decembre dicembre diciembre december dez dec dic",
)
_ENGLISH = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
MONTHS = {name: english for names, english in zip(_NAMES, _ENGLISH, strict=True) for name in names.split()}
"""Names of months in six languages, without accents, and the English abbreviation of each."""
_WEEKDAY = (  # the name of a weekday before a date: `Mi., 3.`
    r"(?i)^\s*(?:mo|di|mi|do|fr|sa|so|ma|wo|vr|za|zo|lun|mer|mi[eé]|gio|jeu|jue|ven|vie|sam|s[aá]b|dim|dom|"
    r"(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend|(?:lun|mar|mercre|jeu|vendre|same)di|dimanche|"
    r"(?:lune|marte|mercole|giove|vener)d[iì]|sabato|domenica|lunes|martes|mi[eé]rcoles|jueves|viernes|s[aá]bado|"
    r"domingo|(?:maan|dins|woens|donder|vrij|zater|zon)dag)\.?,?\s+(\d)"
)
_DATE = (  # `3. März 2023 um 14:05`, `3 de marzo de 2023, 14:05`
    r"^\s*(\d{1,2})(?:\.|er|º|°)?[\s\-/]*(?:de\s+)?(\p{L}{3,10})\.?,?[\s\-/]*(?:del?\s+)?(\d{4})"
    r"[\s,T]*(?:à|a las|alle ore|alle|ore|um|om|at)?[\s,]*(.*)$"
)


def with_english_months(texts: pl.Series) -> pl.Series:
    """Texts such as `3. März 2023 14:05` as `3 Mar 2023 14:05`; others as they are."""
    bare = texts.str.replace(_WEEKDAY, "${1}")
    groups = bare.str.extract_groups(_DATE).struct.unnest()
    day, month, year, time = groups.get_columns()
    if month.null_count() == len(month):
        return texts
    plain = month.str.normalize("NFKD").str.replace_all(r"\p{M}", "").str.to_lowercase()
    english = plain.replace_strict(MONTHS, default=None, return_dtype=pl.String)
    clock = time.str.replace(r"^(\d{1,2})\s?h\s?(\d\d)", "${1}:${2}")
    parts = pl.DataFrame([day.alias("d"), english.alias("m"), year.alias("y"), clock.alias("t")])
    english = parts.select(pl.format("{} {} {} {}", "d", "m", "y", "t").alias("english"))["english"]
    return english.fill_null(texts)
