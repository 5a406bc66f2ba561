"""How numba compiles functions of ours that other compiled functions call: linked into these, and nothing else.

numba optimises every function by itself, with all that it calls, and makes machine code of it, once more at each level
of calls. Only what is called from Python, or by its address, needs that.
"""

from __future__ import annotations

from typing import Any, ClassVar
from weakref import WeakValueDictionary

from numba import extending
from numba.core import codegen, compiler, imputils
from numba.core.environment import lookup_environment
from numba.core.typing import templates

_ENVIRONMENT = "_ZN08NumbaEnv"
_RECURSION = codegen.RuntimeLinker.PREFIX
"""How numba's variables are called that hold a function's environment, and an address that is not known yet."""


class Linked(codegen.JITCodeLibrary):
    """A library that is optimised, and made machine code, when somebody asks for an address in it."""

    _made = False
    _unmade: ClassVar[WeakValueDictionary[str, Linked]] = WeakValueDictionary()
    """By what they define, for functions that call themselves or each other: these look each other up when they run."""

    @property
    def codegen(self) -> Linked:
        """What numba hands the environment to."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Let machine code know its environment."""
        if self._made:
            self._codegen.set_env(name, environment)

    def get_pointer_to_function(self, name: str) -> int:
        """As numba's; 0 for what is not defined here."""
        self._ensure_finalized()
        if not self._made and any(f.name == name and not f.is_declaration for f in self._final_module.functions):
            self._make()
        return int(super().get_pointer_to_function(name)) if self._made else 0

    @property
    def has_dynamic_globals(self) -> bool:
        """Can't it be kept on disk? Optimised code needs fewer; functions that call each other would not be found."""
        self._ensure_finalized()
        self._make()
        return self._recursive or bool(super().has_dynamic_globals)

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Done by `_make`, and once: numba's cheaper optimisation before it finds more references to leave out."""

    def _finalize_final_module(self) -> None:
        self._finalized = True
        self._recursive = bool(self._looked_up())
        defined = [f.name for f in self._final_module.functions if not f.is_declaration]
        for name in defined:  # what is linked in has been there before
            self._unmade.setdefault(name, self)
        if self._recursive or any(name in self._codegen._rtlinker._unresolved for name in defined):
            self._make()

    def _looked_up(self) -> list[str]:
        """The functions that this one looks up when it runs."""
        names = [g.name for g in self._final_module.global_variables]
        return [name.removeprefix(_RECURSION) for name in names if name.startswith(_RECURSION)]

    def _make(self) -> None:
        if self._made:
            return
        self._made = True
        for name in self._looked_up():
            if name in self._unmade:
                self._unmade[name]._make()
        passes = self._codegen._module_pass_manager()
        if isinstance(passes, tuple):  # with LLVM's new pass manager
            passes[0].run(self._final_module, passes[1])
        else:
            passes.run(self._final_module)
        super()._finalize_final_module()
        for name in (g.name for g in self._final_module.global_variables):
            if name.startswith(_ENVIRONMENT) and (environment := lookup_environment(name)) is not None:
                self._codegen.set_env(name, environment)


class LinkedCompiler(compiler.Compiler):
    """numba's compiler, with such a library."""

    def define_pipelines(self) -> Any:
        """As numba's."""
        if self.state.library is None:
            self.state.library = Linked(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
            self.state.library.enable_object_caching()
        return super().define_pipelines()


def intrinsic(function: Any = None, *, prefer_literal: bool = False) -> Any:
    """numba's, for the processor: to find out what one is for, numba loads all that it knows anew at every call."""
    if function is None:
        return lambda function: intrinsic(function, prefer_literal=prefer_literal)
    made = extending.intrinsic(prefer_literal=prefer_literal)(function)
    templates.builtin_registry.functions[-1]._get_target_registry = lambda self, reason: imputils.builtin_registry
    return made
