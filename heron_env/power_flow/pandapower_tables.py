"""What a pandapower file may say: the columns that are used, must be neutral, or do not matter. All else is refused.

Written beside pandapower 3.5's build_bus.py, build_branch.py, build_gen.py and convert_format.py: a column that these
read is used, or must be neutral. Rows out of service are not looked at.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Final

from heron_env.errors import ConfigError, DataError

ZIP: Final = "{row} has {column}={value!r}: loads that depend on the voltage are not modelled; set it to 0"
TABLE: Final = (
    "{row} has {column}={value!r}: tables of tap positions are not modelled; set it to False and write the "
    "numbers of the tap position into the row"
)
SHIFTER: Final = (
    "{row} has {column}={value!r}: phase shifters of old files are not modelled; save the network with pandapower >= 3"
)
LEAKAGE: Final = "{row} has {column}={value!r}: the transformer is a pi model, which knows no such share; set it to 0.5"
OF_ALL: Final = "name type zone subnet voltLvl geo origin_id origin_class description"
LIMITS: Final = "min_p_mw max_p_mw min_q_mvar max_q_mvar controllable"


@dataclass(frozen=True)
class Neutral:
    """A column that is not modelled: the values at which it changes nothing, and why others are refused."""

    values: tuple[object, ...]
    words: str


@dataclass(frozen=True)
class KnownColumns:
    """Of one table: which are used, which of them may be missing, which must be neutral, and which do not matter."""

    used: frozenset[str]
    optional: frozenset[str]
    neutral: dict[str, Neutral]
    unimportant: frozenset[str]

    @classmethod
    def of(cls, used: str, unimportant: str, neutral: dict[str, Neutral], *, optional: str = "") -> KnownColumns:
        """From names with spaces between them; `optional` are used, too."""
        return cls(_names(used, optional), _names(optional), neutral, _names(OF_ALL, unimportant))


def _names(*texts: str) -> frozenset[str]:
    return frozenset(" ".join(texts).split())


POWERS: Final = "bus p_mw q_mvar scaling in_service"
COLUMNS: Final = {
    "bus": KnownColumns.of("vn_kv in_service", "max_vm_pu min_vm_pu substation", {}),
    "ext_grid": KnownColumns.of(
        "bus vm_pu in_service",
        f"va_degree slack_weight s_sc_max_mva s_sc_min_mva rx_max rx_min r0x0_max x0x_max {LIMITS}",
        {},
    ),
    "line": KnownColumns.of(
        "from_bus to_bus length_km r_ohm_per_km x_ohm_per_km c_nf_per_km max_i_ka df parallel in_service",
        "std_type max_loading_percent r0_ohm_per_km x0_ohm_per_km c0_nf_per_km g0_us_per_km endtemp_degree alpha "
        "temperature_degree_celsius reference_temperature_degree_celsius air_temperature_degree_celsius tdpf "
        "wind_speed_m_per_s wind_angle_degree solar_radiation_w_per_sq_m solar_absorptivity emissivity "
        "r_theta_kelvin_per_mw conductor_outer_diameter_m mc_joule_per_m_k",
        {"g_us_per_km": Neutral((0.0,), "{row} leaks (g_us_per_km={value!r}), which is not modelled; set it to 0")},
    ),
    "trafo": KnownColumns.of(
        "hv_bus lv_bus sn_mva vn_hv_kv vn_lv_kv vk_percent vkr_percent pfe_kw i0_percent parallel in_service",
        "std_type shift_degree tap_min tap_max tap2_min tap2_max id_characteristic_table vk_percent_characteristic "
        "vkr_percent_characteristic max_loading_percent vector_group oltc power_station_unit pt_percent xn_ohm "
        "vk0_percent vkr0_percent mag0_percent mag0_rx si0_hv_partial autoTap autoTapSide substation",
        {
            "parallel": Neutral(
                (1,), "{value!r} parallel transformers ({row}) are not modelled; write one of their sum"
            ),
            "tap_dependency_table": Neutral((False, None), TABLE),
            "tap2_dependency_table": Neutral((False, None), TABLE),
            "tap_dependent_impedance": Neutral((False, None), TABLE),
            "tap_phase_shifter": Neutral((False, None), SHIFTER),
            "tap2_phase_shifter": Neutral((False, None), SHIFTER),
            "leakage_resistance_ratio_hv": Neutral((0.5, None), LEAKAGE),
            "leakage_reactance_ratio_hv": Neutral((0.5, None), LEAKAGE),
        },
        optional="df tap_side tap_pos tap_neutral tap_step_percent tap_step_degree tap_changer_type "
        "tap2_side tap2_pos tap2_neutral tap2_step_percent tap2_step_degree tap2_changer_type",
    ),
    "switch": KnownColumns.of("bus element et closed", "z_ohm in_ka substation", {}),
    "load": KnownColumns.of(
        POWERS,
        f"sn_mva profile slack_weight {LIMITS}",
        {
            "const_z_percent": Neutral((0.0, None), ZIP),
            "const_i_percent": Neutral((0.0, None), ZIP),
            **{f"const_{kind}_{power}_percent": Neutral((0.0,), ZIP) for kind in "zi" for power in "pq"},
        },
    ),
    "sgen": KnownColumns.of(
        POWERS,
        "sn_mva k rx current_source generator_type lrc_pu max_ik_ka kappa id_q_capability_characteristic "
        "id_q_capability_curve_characteristic reactive_capability_curve curve_style phys_type profile slack_weight "
        f"{LIMITS}",
        {},
    ),
    "storage": KnownColumns.of(
        POWERS,
        "sn_mva soc_percent min_e_mwh max_e_mwh profile efficiency_percent self-discharge_percent_per_day slack_weight "
        f"{LIMITS}",
        {},
    ),
}
"""The tables that are read."""
ELEMENTS: Final = _names(
    "trafo3w impedance dcline xward ward shunt tcsc svc ssc vsc line_dc bus_dc gen asymmetric_load asymmetric_sgen",
    "motor load_dc source_dc b2b_vsc vsc_stacked vsc_bipolar",
)
"""Tables whose elements change the flows, and are not modelled."""
UNIMPORTANT_TABLES: Final = _names(
    "measurement pwl_cost poly_cost piecewise_linear_cost polynomial_cost controller group bus_geodata line_geodata",
    "characteristic trafo_characteristic_table trafo_characteristic_spline shunt_characteristic_table",
    "shunt_characteristic_spline q_capability_characteristic q_capability_curve_characteristic",
    "q_capability_curve_table loadcases studycases substation protection",
)
"""Tables that pandapower's solver reads only through a column that must be neutral here, or never."""
OPTIONS: Final = {
    "trafo_model": "pi", "trafo_loading": "current", "enforce_p_lims": False, "enforce_q_lims": False,
    "consider_line_temperature": False, "distributed_slack": False, "tdpf": False,
    "neglect_open_switch_branches": False,
}  # fmt: skip
"""What `user_pf_options` may say, if anything, of what changes the solution."""
UNIMPORTANT_OPTIONS: Final = _names(
    "algorithm calculate_voltage_angles init init_vm_pu init_va_degree max_iteration tolerance_mva check_connectivity",
    "voltage_depend_loads numba v_debug delta delta_q switch_rx_ratio trafo3w_losses recycle only_v_results",
    "use_umfpack permc_spec lightsim2grid tdpf_update_r_theta tdpf_delay_s",
)


@dataclass(frozen=True)
class TableRow:
    """A row of a table.

    Attributes:
        where: name of the file. table, index: its table, and its number there.
        cells: values by column; None and nan are empty.
    """

    where: str
    table: str
    index: Any
    cells: dict[str, Any]

    def __str__(self) -> str:
        """`line 3`, and its name where it has one."""
        name = self.cells.get("name")
        return f"{self.table} {self.index}" + (f" ({name!r:.60})" if isinstance(name, str) and name else "")

    def __getitem__(self, column: str) -> Any:
        """Its value, None for an empty one. Raises DataError where there is no such column."""
        if column not in self.cells:
            raise DataError(
                f"{self.where}: a table lacks the column {column!r}: {self.table}; save the network with pandapower "
                ">= 2"
            )
        return None if is_empty(value := self.cells[column]) else value

    def __contains__(self, column: str) -> bool:
        """Is there such a column?"""
        return column in self.cells

    def number(self, column: str, least: float = -math.inf, *, above: float = -math.inf) -> float:
        """A finite number. Raises DataError."""
        value = self[column]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.fault(column, "write a finite number")
        if value < least or value <= above:
            raise self.fault(column, f"write a number > {above:g}" if value <= above else f"write one >= {least:g}")
        return float(value)

    def optional(self, column: str) -> float:
        """As `number`; nan where it is empty or there is no such column."""
        return math.nan if is_empty(self.cells.get(column)) else self.number(column)

    def switch(self, column: str) -> bool:
        """True or False. Raises DataError."""
        if (value := self[column]) not in (True, False):
            raise self.fault(column, "write true or false")
        return bool(value)

    def word(self, column: str, words: tuple[str, ...]) -> str:
        """One of these, or "" where it is empty. Raises DataError."""
        if (value := self[column]) is not None and value not in words:
            raise self.fault(column, f"write one of {[word for word in words if word]}, or null")
        return value or ""

    def fault(self, column: str, remedy: str) -> DataError:
        """What is wrong in a column, and how to mend it."""
        return DataError(f"{self.where}: {self} has {column}={self.cells[column]!r:.60}; {remedy}")

    def require_modelled(self) -> None:
        """Raise ConfigError for a column that may change the solution, and is not modelled; DataError for none."""
        columns = COLUMNS[self.table]
        for column in sorted(columns.used - columns.optional):
            _ = self[column]
        for column, value in self.cells.items():
            if column in columns.neutral:
                neutral = columns.neutral[column]
                if (None if is_empty(value) else value) not in neutral.values:
                    words = neutral.words.format(row=self, column=column, value=value)
                    raise ConfigError(f"{self.where}: {words}")
            elif column not in columns.used | columns.unimportant and value and not is_empty(value):
                raise ConfigError(
                    f"{self.where}: {self} has {column}={value!r:.60}: this column is not known here, and may change "
                    f"the flows; remove it if it does not (del net.{self.table}[{column!r}])"
                )


def read_tables(where: str, saved: dict[str, Any]) -> dict[str, list[TableRow]]:
    """The rows of each table of COLUMNS; of "network" one, its own numbers.

    Raises:
        ConfigError: a table, column or option may change the solution, and is not modelled.
        DataError: a table is damaged.
    """
    _require_options(where, saved.get("user_pf_options"))
    for name, table in saved.items():
        if name not in COLUMNS and not name.startswith(("res_", "_")) and name not in UNIMPORTANT_TABLES:
            _require_none(where, name, _frame(table))
    found = {name: _rows(where, name, saved.get(name)) for name in COLUMNS}
    for row in (row for rows in found.values() for row in rows):
        if row.table == "switch" or row.switch("in_service"):
            row.require_modelled()
    return {**found, "network": [TableRow(where, "network", "", saved)]}


def _require_options(where: str, options: dict[str, Any] | None) -> None:
    for name, value in (options or {}).items():
        if name not in UNIMPORTANT_OPTIONS and (name not in OPTIONS or value != OPTIONS[name]):
            remedy = f"only {OPTIONS[name]!r} is modelled" if name in OPTIONS else "it may change the flows"
            raise ConfigError(
                f"{where}: user_pf_options has {name}={value!r:.60}: {remedy}; remove it (net.user_pf_options.pop("
                f"{name!r}))"
            )


def _require_none(where: str, name: str, frame: dict[str, Any] | None) -> None:
    """Raise ConfigError where a table that is not read has a row in service."""
    for row in _rows_of(where, name, frame) if frame else ():
        if name in ELEMENTS and row.cells.get("in_service", True):
            raise ConfigError(
                f"{where}: has elements of the kind {name!r}, which are not modelled ({row} has in_service=True); "
                "remove them"
            )
        if name not in ELEMENTS:
            raise ConfigError(
                f"{where}: has a table {name!r} that is not known here, and may change the flows; remove it if it does "
                f"not (del net[{name!r}])"
            )


def _frame(saved: Any) -> dict[str, Any] | None:
    """A table as pandas saves it; None for what is no table."""
    if not isinstance(saved, dict) or "_object" not in saved:
        return None
    frame = saved["_object"]
    frame = json.loads(frame) if isinstance(frame, str) and frame.startswith("{") else frame
    return frame if isinstance(frame, dict) and {"columns", "index", "data"} <= frame.keys() else None


def _rows(where: str, name: str, saved: Any) -> list[TableRow]:
    """Of a table that is read; none where there is none. Raises DataError."""
    if saved is None:
        return []
    if (frame := _frame(saved)) is None:
        raise DataError(f"{where}: {name} is no table; save the network with pandapower anew")
    return _rows_of(where, name, frame)


def _rows_of(where: str, name: str, frame: dict[str, Any]) -> list[TableRow]:
    """Raises DataError for two rows with one number."""
    columns, index, data = (frame[part] for part in ("columns", "index", "data"))
    rows = [
        TableRow(where, name, at, dict(zip(columns, row, strict=True))) for at, row in zip(index, data, strict=True)
    ]
    numbers = [row.index for row in rows]
    if len(set(numbers)) != len(numbers):
        twice = next(number for number in numbers if numbers.count(number) > 1)
        raise DataError(f"{where}: {name} {twice} is there twice; reset the index (net.{name}.reset_index(drop=True))")
    return rows


def is_empty(value: object) -> bool:
    """Is it null or nan, as pandas writes what is not there?"""
    return value is None or (isinstance(value, float) and math.isnan(value))
