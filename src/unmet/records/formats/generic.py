"""Any table of sessions: its columns are found by their names, or named by a mapping."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import polars as pl

from unmet.csv_files import LINE
from unmet.records.formats.base import Format, Head, Raw
from unmet.records.formats.column_names import are_times_of_day, nested_names, plain_name
from unmet.records.formats.files import read_table
from unmet.records.formats.json_text import Reject, flat_cells, read_members, rejected_frame, text_frame
from unmet.records.formats.shared_dates import with_shared_date
from unmet.records.mapping import Mapping
from unmet.records.named_zones import zone_in_name

__all__ = ["ALIASES", "GENERIC", "energy_factor", "guess_mapping", "read_json_table"]

# Headings by which a column is recognised, written as `plain_name` returns them, and the best first: English, then
# German, French, Italian, Spanish and others. For energies, the empty word is a heading that is only a unit (kWh).
_WORDS = {
    "start": "start,sessionstart,connectionstart,connectstart,plugin,pluginstart,transactionstart,arrival,begin,"
    "started,connected,connection,chargingstart,chargestart,"
    "beginn,ladebeginn,ladestart,startladung,debut,debutcharge,debutdecharge,debutdelacharge,debutrecharge,"
    "debutdelarecharge,debutsession,debutdesession,debutdelasession,debuttransaction,debutdetransaction,inizio,inizioricarica,inicio,"
    "iniciocarga,iniciorecarga,from,von,van",
    "end": "end,sessionend,connectionend,connectend,plugout,pluginend,transactionend,departure,stop,ended,finish,"
    "unplug,disconnect,disconnected,chargingend,chargeend,"
    "ende,ladeende,endeladung,fin,fincharge,findecharge,findelacharge,finrecharge,findelarecharge,finsession,"
    "findesession,findelasession,fintransaction,findetransaction,fine,finericarica,fincarga,finrecarga,termino,eind,einde,slut,"
    "to,bis,tot",
    "duration": "totalduration,sessionduration,connectionduration,plugduration,pluginduration,parkingduration,duration,"
    "connectedtime,connectiontime,plugintime,dauer,ladedauer,standzeit,duree,dureedecharge,dureedelacharge,"
    "dureedesession,durata,duracion,duur,laadduur",
    "energy_kwh": "energy,,energydelivered,deliveredenergy,totalenergy,energytotal,energyconsumed,energyconsumption,"
    "total,delivered,consumption,energyused,energycharged,chargedenergy,usage,consumed,"
    "energie,energiemenge,energieverbrauch,geladeneenergie,abgegebeneenergie,verbrauch,lademenge,strommenge,"
    "consommation,consommationtotale,energieconsommee,energiedelivree,energietotale,energiechargee,quantiteenergie,"
    "quantitedenergie,energia,energiaerogata,consumo,energiaconsumida,"
    "energiasuministrada,energieafgenomen,verbruik,forbrug",
    "meter_start": "meterstart,startmeter,meterstartreading,startmeterreading,meterreadingstart,meterbegin,meterbefore,"
    "meterstartvalue,zahlerstandstart,zahlerstandbeginn,zahlerstandanfang,startzahlerstand,"
    "anfangszahlerstand,zahlerstart,compteurdebut,indexdebut,indexdedebut,letturainiziale,lecturainicial,meterstandstart",
    "meter_end": "meterstop,meterend,stopmeter,endmeter,meterstopreading,meterendreading,stopmeterreading,"
    "endmeterreading,meterreadingend,meterreadingstop,meterafter,meterstopvalue,meterendvalue,"
    "zahlerstandende,zahlerstandstop,endzahlerstand,zahlerende,compteurfin,indexfin,indexdefin,letturafinale,"
    "lecturafinal,meterstandeind,meterstandeinde",
    "session_id": "sessionid,chargingsessionid,chargesessionid,transactionid,chargingeventid,chargingevent,eventid,"
    "cdrid,chargeid,session,transaction,id,ladevorgangid,ladevorgang,vorgangid,vorgang,transaktionsid,transaktion,"
    "sessione,transazione,transaccion,recarga",
    "station_id": "stationid,chargingstationid,station,chargingstation,chargepointid,chargepoint,cpid,chargeboxid,"
    "chargerid,charger,ladestation,ladestationid,ladesaule,ladesaeule,ladesaulenid,saulenid,ladestander,laadpaal,"
    "colonnina,estacion,standort,stationname,locationid,siteid,location,site,locationname,sitename,address,evseid,evse,"
    "idstation,identifiantstation,identifiantdelastation,stationderecharge,nomstation,nomdelastation,bornederecharge,"
    "idborne,identifiantborne,identifiantdelaborne,nomdelaborne,borne",
    "plug_id": "plugid,plug,connectorid,connector,portid,port,outletid,outlet,socketid,socket,evseid,evse,"
    "ladepunkt,ladepunktid,steckdose,stecker,anschluss,prise,connecteur,idconnecteur,pointdecharge,idpointdecharge,presa,conector,toma,stik",
    "vehicle_id": "vehicleid,vehicle,evid,fahrzeug,fahrzeugid,kennzeichen,vehicule,veicolo,vehiculo,voertuig",
    "user_id": "userid,user,driverid,driver,badgeid,badge,cardid,card,rfid,rfidcard,tokenid,token,tagid,idtag,uid,"
    "customerid,customer,customercard,memberid,kundenkarte,ladekarte,rfidkarte,karte,karten,kunde,kunden,kundenid,"
    "nutzer,nutzerid,benutzer,benutzerid,fahrer,fahrerid,utilisateur,carte,client,utente,tessera,usuario,tarjeta,"
    "laadpas,pas",
    "post_id": "postid,post,chargepostid,borne,columnid",
    "operator": "operator,operatorname,operatorid,cpo,network,betreiber,operateur,operatore,operador",
    "charged": "charged,donecharging,chargingend,chargeend,chargingstop",
    "zone": "timezone,tz,starttimezone,starttz,zeitzone",
    "end_zone": "endtimezone,endtz",
}
ALIASES = {field: tuple(words.split(",")) for field, words in _WORDS.items()}
"""Headings by which the column of each entry of a mapping is recognised, without words such as time, kWh or number."""
_TIMES = (
    "datetime|timestamp|time|date|zeitpunkt|zeitstempel|uhrzeit|zeit|datum|heure|data|ora|fecha|hora|tidspunkt|tid|tijd|"
    "dato"
)
# What `_base` removes from plain names, such as starttimeutc, datumunduhrzeitbeginn and datededebut; ladepunktnr and
# numerodecarte; durationinminutes.
_TIME_WORDS = re.compile(rf"(utc|gmt|local)?({_TIMES}|at)?({_TIMES})?((utc|gmt)\d{{0,4}}|local|zulu|z)?$")
_TIME_FIRST = re.compile(rf"^({_TIMES})(und|et|e|y)?({_TIMES})?")
_TIME_OF = re.compile(rf"{_TIME_FIRST.pattern}(de|du|di|der|des|del|van)")
_NUMBER_LAST = re.compile(r"(nummer|number|numero|num|nr|no)$")
_NUMBER_FIRST = re.compile(r"^(numero|nummer|number|num|nr|no|id)(de|du|di|der|des|del|della|la)*")
_DURATION_WORDS = re.compile(r"(in)?(hhmmss|hhmm|hms|hours?|minutes?|seconds?|hrs|mins?|secs?|std|[hms])$")


def energy_factor(column: str) -> float:
    """The factor that converts the energies of a column to kWh, from the unit in its heading."""
    name = column.lower()
    if "kwh" in name.replace(" ", ""):
        return 1.0
    if "mwh" in name:
        return 1000.0
    return 0.001 if re.search(r"wh(?![a-z])", name) else 1.0


def guess_mapping(frame: pl.DataFrame) -> Mapping:
    """The mapping that the column names suggest; entries without a match keep their defaults."""
    found: dict[str, Any] = {}
    for field, aliases in ALIASES.items():
        # Reversed, so that the first of several columns with the same name is the one that stays in `names`.
        free = [column for column in reversed(frame.columns) if column not in found.values()]
        names = {_base(field, plain_name(column)): column for column in free}
        if not names.keys() & set(aliases):
            names = _inner_names(field, free)
        if not names.keys() & set(aliases):
            names = _names_in_two_languages(field, free)
        column = next((names[alias] for alias in aliases if alias in names), None)
        if column is not None:
            found[field] = column
    found |= _both_in_utc(frame, found)
    for field in ("start", "end"):
        pair = _date_and_time(frame, field, found.get(field))
        if pair:
            found[field] = pair
    found = with_shared_date(frame, found)
    if "end" in found:
        found.pop("duration", None)
    if "energy_kwh" in found or not {"meter_start", "meter_end"} <= set(found):
        found = {field: column for field, column in found.items() if field not in {"meter_start", "meter_end"}}
    if "energy_kwh" in found or "meter_end" in found:
        found["energy_factor"] = energy_factor(found.get("energy_kwh") or found["meter_end"])
    return Mapping(**found)


def _inner_names(field: str, columns: list[str]) -> dict[str, str]:
    """Columns of nested values by their inner names, such as `kwh` of `energy.kwh`; ambiguous names are left out."""
    found: dict[str, set[str]] = {}
    for column in columns:
        for name in nested_names(column, is_id=field.endswith("_id")):
            found.setdefault(_base(field, name), set()).add(column)
    return {name: owners.pop() for name, owners in found.items() if len(owners) == 1}


def _names_in_two_languages(field: str, columns: list[str]) -> dict[str, str]:
    """Parts of headings such as `Beginn / Début` that name this field, if no part names another one."""
    found: dict[str, str] = {}
    for column in columns:
        parts = [plain_name(part) for part in re.split(r"[/|]", column)]
        if len(parts) > 1 and all(len(part) > 2 for part in parts):
            known = {(name, _base(name, part)) for name in ALIASES for part in parts}
            known = {(name, base) for name, base in known if base and base in ALIASES[name]}
            if {name for name, _ in known} == {field}:
                found |= {base: column for _, base in known}
    return found


def _base(field: str, name: str) -> str:
    """A plain name without words that only state a type or unit, for comparison with the aliases of a field.

    For energies, a name that neither states a unit nor speaks of energy becomes one that matches no alias, since words
    such as `total` are aliases only with a unit.
    """
    words = ALIASES[field]
    if field in {"start", "end", "charged"}:
        shorter = [pattern.sub("", name) for pattern in (_TIME_WORDS, _TIME_FIRST, _TIME_OF)]
        return next((word for word in shorter if word in words), shorter[0]) or name
    if field == "duration":
        return _DURATION_WORDS.sub("", name) or name
    if field in {"meter_start", "meter_end"}:
        return re.sub(r"^[km]?wh|[km]?wh$", "", name) or name
    if field == "energy_kwh":
        unit = re.search(r"^[km]?wh|[km]?wh$", name)
        if unit:
            return name[: unit.start()] + name[unit.end() :]
        return name if re.search("energ|consum|consom|verbrau|verbrui|forbrug|menge", name) else f"no energy: {name}"
    if field.endswith("_id") and field != "station_id" and name not in words:
        shorter = [_NUMBER_LAST.sub("", name), _NUMBER_FIRST.sub("", name)]
        return next((word for word in shorter if word and word in words), name)
    return name


def _date_and_time(frame: pl.DataFrame, field: str, found: str | None) -> tuple[str, str] | None:
    """The columns of date and time if they are separate, such as `Start Date` and `Start Time`."""
    if found is None:
        return None
    stem = _base(field, plain_name(found))
    alike = [column for column in frame.columns if _base(field, plain_name(column)) == stem]
    of_one_zone = [column for column in alike if zone_in_name(column) == zone_in_name(found)]
    alike = of_one_zone if any(are_times_of_day(frame[column]) for column in of_one_zone) else alike
    times = [column for column in alike if are_times_of_day(frame[column])]
    dates = [column for column in alike if column not in times]
    return (dates[0], times[0]) if dates and times else None


def _both_in_utc(frame: pl.DataFrame, found: dict[str, Any]) -> dict[str, str]:
    """The columns of start and end in UTC, if a file has both, perhaps beside local ones."""
    chosen = {}
    for field in ("start", "end"):
        stem = _base(field, plain_name(found[field])) if field in found else None
        alike = [c for c in frame.columns if _base(field, plain_name(c)) == stem and zone_in_name(c) == "UTC"]
        if alike:
            chosen[field] = alike[0]
    return chosen if len(chosen) == 2 else {}


def _matches(head: Head) -> bool:
    """Whether the file may be a table of sessions. Any table may: this format is tried last."""
    return head.kind != "json" or {"start", "end"} <= set(_guessed(head))


def _guessed(head: Head) -> dict[str, Any]:
    """The entries of a mapping that the names at the beginning of a JSON file suggest."""
    names = dict.fromkeys(re.findall(r'"([^"\\]{1,60})"\s*:', head.text))
    found = guess_mapping(pl.DataFrame(schema=dict.fromkeys(names, pl.String)))
    return found.model_dump(exclude_defaults=True) | {name: name for name in ("start", "end") if name in names}


def _read(head: Head) -> Raw:
    if head.kind != "json":
        sessions, rejected = read_table(head)
    else:
        sessions, rejected = read_json_table(head)
    mapping = guess_mapping(sessions.drop(LINE))
    return Raw(mapping, sessions=sessions, rejected=rejected, notes=_inner_notes(mapping, head))


def _inner_notes(mapping: Mapping, head: Head) -> tuple[str, ...]:
    """A sentence that lists the nested values that are used, if there are any."""
    used = {entry: value for entry, value in mapping.entries().items() if isinstance(value, str) and "." in value}
    if head.kind != "json" or not used:
        return ()
    shown = ", ".join(f"{entry} from {column!r}" for entry, column in used.items())
    return (f"nested values are used: {shown}. Give --map to use others.",)


_ENVELOPES = ("data", "_items", "items", "results", "records", "sessions", "transactions", "value")


def read_json_table(head: Head) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The objects of a JSON file as rows: of an array, of the list in an envelope, or one per line."""
    inside = re.match(rf'\s*\{{.{{0,2000}}?"({"|".join(_ENVELOPES)})"\s*:\s*\[', head.text, re.DOTALL)
    rejects: list[Reject] = []

    def rows() -> Iterator[tuple[int, dict[str, str | None]]]:
        for number, member in read_members(head.path, inside[1] if inside else "data"):
            if isinstance(member, dict):
                yield number, flat_cells(member)
            else:
                rejects.append((number, "", str(member)[:200], "is not an object"))

    sessions = text_frame(rows(), ())
    return sessions, rejected_frame(rejects)


GENERIC = Format("generic", "any table of sessions (CSV, Excel, Parquet or JSON)", _matches, _read)
