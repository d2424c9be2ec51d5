"""Architectures of others are as in eager, and docs/torch_models.md says what became of them."""

import logging

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed in this environment")

from zoo import page, trials
from zoo.architectures import DYNAMIC, FAST, MODELS, TRAINED

# Eager, too, is that far from float64 where layers normalise by the statistics of few elements.
LIMITS = {"eval": 1e-4, "train": 1e-3, "dynamic": 1e-4}
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def models(names):
    return [pytest.param(name, marks=[pytest.mark.fast] if name in FAST else []) for name in names]


def check(section, name, told):
    said = page.read(section)[name]
    found = dict(zip(page.COLUMNS, page.cells(page.line(name, told))))
    for column in ("kind", "graphs", "ops", "programs"):
        assert found[column] == said[column], (column, page.line(name, told))
    assert page.ops(found["left in torch"]) == page.ops(said["left in torch"])
    assert told.kernels <= 1.5 * int(said["kernels"]) and told.error <= min(10 * float(said["error"]), LIMITS[section])


def need(name):
    source = MODELS[name].source
    if source:
        pytest.importorskip(source, reason=f"{source} is not installed in this environment")


@pytest.mark.parametrize("name", models(MODELS))
def test_eval_gives_what_eager_gives(name):
    need(name)
    check("eval", name, trials.trial(name))


@pytest.mark.parametrize("name", models(TRAINED))
def test_a_training_step_gives_eagers_gradients(name):
    need(name)
    check("train", name, trials.trial(name, train=True))


@pytest.mark.parametrize("name", models(DYNAMIC))
def test_one_compilation_serves_three_sizes(name):
    need(name)
    told = trials.sizes(name)
    assert told.graphs == 1
    check("dynamic", name, told)


def test_the_page_has_all_models_and_no_others():
    assert {section: tuple(page.read(section)) for section in page.TITLES} == page.NAMES
    assert len(MODELS) >= 40 and len(TRAINED) >= 15 and len(DYNAMIC) >= 10
