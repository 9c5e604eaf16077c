"""What a run leaves can be read, saved, summed up and handed to ArviZ."""

import sys

import numpy as np
import pytest
import xarray as xr

from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.inference.posterior import Posterior
from polystick.inference.stochastic import StochasticVI
from toy_model import Toy

X = np.random.default_rng(5).normal(1.0, 1.4, size=37)
COORDS = {"one": ["theta"], "row": [f"r{i}" for i in range(37)]}


@pytest.fixture(scope="module")
def gibbs():
    settings = Gibbs(40, 10, n_chains=3, keep=("level",), max_bytes=40 * 3 * 37 * 8 // 2)
    return settings.run(Toy(), Toy().shards(X), seed=1, coords=COORDS)


@pytest.fixture(scope="module")
def field():
    return MeanField(n_draws=30).run(Toy(), Toy().shards(X), seed=1, coords=COORDS)


def test_axes_have_words_and_labels(gibbs):
    theta = gibbs.tree["posterior"]["theta"]
    assert theta.dims == ("chain", "draw", "one")
    assert list(theta.coords["one"].values) == ["theta"]
    assert gibbs.tree["thinned"]["level"].dims == ("chain", "draw_of_level", "row")
    assert gibbs.tree["running"]["level_mean"].dims == ("row",)
    assert gibbs.names() == ["theta", "level"]


def test_unknown_names_say_what_there_is(gibbs):
    with pytest.raises(KeyError, match="was not recorded; there are theta, level"):
        gibbs["thta"]


def test_what_a_posterior_lacks_is_said(gibbs, field):
    with pytest.raises(KeyError, match="'levle' has no running moments; there are those of level"):
        gibbs.running("levle")
    with pytest.raises(KeyError, match="no log likelihood of draws, but a bound"):
        _ = field.log_likelihood
    assert repr(gibbs) == "<Posterior, gibbs: draws of theta, level>"


@pytest.mark.parametrize("kind", ["gibbs", "field"])
def test_save_and_load(kind, tmp_path, request):
    posterior = request.getfixturevalue(kind)
    path = posterior.save(tmp_path / "draws.nc")
    loaded = Posterior.load(path)
    assert loaded.tree.identical(posterior.tree)
    assert loaded.summary() == posterior.summary()
    assert [p.name for p in tmp_path.iterdir()] == ["draws.nc"]
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        assert "posterior" in tree.children


def test_a_file_of_someone_else_is_refused(tmp_path):
    xr.DataTree.from_dict({"posterior": xr.Dataset({"a": ("x", [1.0])})}).to_netcdf(
        tmp_path / "other.nc", engine="h5netcdf"
    )
    with pytest.raises(ValueError, match="it has no checksum at its end"):
        Posterior.load(tmp_path / "other.nc")
    with pytest.raises(ValueError, match="polystick's format 2; got None"):
        Posterior.load(tmp_path / "other.nc", unchecked=True)


def test_paths_that_lead_nowhere(gibbs, tmp_path):
    with pytest.raises(FileNotFoundError, match="must exist before"):
        gibbs.save(tmp_path / "no" / "draws.nc")
    with pytest.raises(FileNotFoundError, match="there is none"):
        Posterior.load(tmp_path / "none.nc")
    (tmp_path / "garbage.nc").write_text("not a file of draws")
    with pytest.raises(ValueError, match=r"must be a file that Posterior\.save wrote"):
        Posterior.load(tmp_path / "garbage.nc")


def test_without_the_library_for_files(gibbs, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install polystick\[io\]"):
        gibbs.save(tmp_path / "draws.nc")


def test_constant_draws_are_not_diagnosed():
    still = np.zeros((2, 10))
    groups = {"posterior": {"a": still[..., None]}, "sample_stats": {"total_log_likelihood": still}}
    posterior = Posterior.build(groups, attrs={"inference": "gibbs"})
    assert "R-hat" in posterior.summary()
    assert "nan" not in posterior.summary()


def test_what_has_no_entries_is_not_diagnosed():
    """Such as the parameters of a kernel that has none."""
    values = np.random.default_rng(0).normal(size=(2, 10))
    groups = {
        "posterior": {"a": values[..., None], "none": np.zeros((2, 10, 0))},
        "sample_stats": {"total_log_likelihood": values},
    }
    posterior = Posterior.build(groups, attrs={"inference": "gibbs"})
    assert posterior.summary().endswith("over log_likelihood, a")


def test_a_save_that_fails_leaves_the_old_file(gibbs, tmp_path, monkeypatch):
    path = gibbs.save(tmp_path / "draws.nc")
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(xr.DataTree, "to_netcdf", full)
    with pytest.raises(OSError, match="No space"):
        gibbs.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["draws.nc"]


def test_one_line_summary(gibbs, field):
    line = gibbs.summary()
    assert "\n" not in line
    assert line.startswith("Gibbs: 3 chains x 40 draws; worst R-hat 1.")
    assert "smallest ESS" in line
    assert field.summary().startswith("mean field: bound -")
    assert "converged" in field.summary()


def test_diagnostics_see_chains_that_disagree():
    rng = np.random.default_rng(0)
    apart = rng.standard_normal((2, 200, 1)) + np.array([0.0, 3.0])[:, None, None]
    groups = {"posterior": {"a": apart}, "sample_stats": {"total_log_likelihood": apart[..., 0]}}
    posterior = Posterior.build(groups, attrs={"inference": "gibbs"})
    found = posterior.diagnostics()["a"]
    assert found.rhat > 1.5
    assert found.ess < 20


def test_few_draws_are_not_diagnosed():
    one = Gibbs(3, 1, n_chains=1).run(Toy(), Toy().shards(X), seed=1)
    assert "R-hat and ESS need draws that vary, at least 4 of each chain" in one.summary()


def test_without_arviz(gibbs, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    assert "worst R-hat" in gibbs.summary()
    with pytest.raises(ImportError, match=r"pip install polystick\[arviz\]"):
        gibbs.to_arviz()


def test_to_arviz_suits_the_installed_one(gibbs):
    import arviz

    data = gibbs.to_arviz()
    assert "posterior" in (data.groups() if callable(data.groups) else data.children)
    assert float(np.max(np.asarray(arviz.rhat(data, var_names=["theta"])["theta"]))) < 1.2


def test_to_arviz_of_the_line_whose_inference_data_is_a_tree(gibbs, monkeypatch):
    """ArviZ 1.x answers to the name of what it no longer has."""
    import arviz

    monkeypatch.setitem(vars(arviz), "InferenceData", xr.DataTree)
    assert gibbs.to_arviz() is gibbs.tree
    monkeypatch.delitem(vars(arviz), "InferenceData")
    assert gibbs.to_arviz() is gibbs.tree


def test_files_of_format_1_are_read(gibbs, tmp_path):
    old = gibbs.tree.copy()
    stats = old["sample_stats"].to_dataset().rename(total_log_likelihood="log_likelihood")
    old["sample_stats"] = stats
    old.attrs["polystick_format"] = 1
    old.to_netcdf(tmp_path / "old.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match="it has no checksum at its end"):
        Posterior.load(tmp_path / "old.nc")
    loaded = Posterior.load(tmp_path / "old.nc", unchecked=True)
    np.testing.assert_array_equal(loaded.log_likelihood, gibbs.log_likelihood)
    assert loaded.summary() == gibbs.summary()


def test_the_bound_is_a_float_in_all_cases(field, tmp_path):
    saved = {"seed": 1, "checkpoint": tmp_path / "run"}
    short, longer = (MeanField(max_sweeps=n, tolerance=1e-9, n_draws=3) for n in (2, 4))
    with pytest.warns(match="did not converge"):
        short.run(Toy(), Toy().shards(X), **saved)
    with pytest.warns(match="did not converge"):
        resumed = longer.run(Toy(), Toy().shards(X), **saved, resume=True)
    loaded = Posterior.load(field.save(tmp_path / "draws.nc"))
    batches = StochasticVI(8, n_passes=1, n_draws=3).run(Toy(), Toy().shards(X), seed=1)
    for posterior in (field, resumed, loaded, batches):
        assert type(posterior.tree.attrs["elbo"]) is float


def test_mean_field_draws_are_from_the_factor(field):
    assert field["theta"].shape == (1, 30, 1)
    assert field.tree.attrs["inference"] == "mean_field"
    gap = field.flat("theta").mean() - field.factor.mean
    assert abs(gap) < 5 * np.sqrt(field.factor.variance / 30)


@pytest.mark.parametrize(
    ("n_draws", "firsts"), [(6, [0, 2, 4]), (7, [0, 2, 5]), (1, [0]), (99, [0, 5, 10])]
)
def test_the_first_states_of_chains_are_known(n_draws, firsts):
    values = np.arange(15.0).reshape(3, 5)
    posterior = Posterior.build({"posterior": {"x": values}})
    chains = [int(x) // 5 for (x,) in posterior.spread(["x"], n_draws)]
    found = list(posterior.firsts_of_chains(["x"], n_draws))
    assert found == [chains.index(c) for c in sorted(set(chains))] == firsts
