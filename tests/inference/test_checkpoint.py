"""A run that is killed goes on where it stood; a checkpoint that can't be used is left alone."""

import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse

from polystick import CorrelatedMultinomial
from polystick.inference import checkpoint as checkpoints
from polystick.inference.checkpoint import Checkpoint, fingerprint
from polystick.inference.files import CheckpointError
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from toy_model import Toy
from victims import start

X = np.random.default_rng(5).normal(1.0, 1.4, size=37)
GIBBS = Gibbs(n_draws=20, n_burn=5, n_chains=2, keep=("square",))


def run(folder, *, resume=False, gibbs=GIBBS, model=Toy(), x=X, seed=3, **options):
    return gibbs.run(
        model, model.shards(x), seed=seed, checkpoint=folder, resume=resume, every=0.0, **options
    )


def stop_at(sweep):
    def tell(progress):
        if progress.sweep == sweep:
            raise RuntimeError("pulled the plug")

    return tell


def cut(folder, sweep=12, **options):
    with pytest.raises(RuntimeError, match="pulled the plug"):
        run(folder, progress=stop_at(sweep), **options)


def contents(folder):
    return {p.name: p.read_bytes() for p in sorted(Path(folder).iterdir())}


def same(left, right):
    for name in ("theta", "square"):
        np.testing.assert_array_equal(left[name], right[name])
    for name in ("level", "square"):
        np.testing.assert_array_equal(left.running(name), right.running(name))
    np.testing.assert_array_equal(left.log_likelihood, right.log_likelihood)


@pytest.mark.parametrize("sweep", [1, 4, 6, 12, 25])
def test_resume_gives_the_same_bits(tmp_path, sweep):
    cut(tmp_path / "a", sweep)
    same(run(tmp_path / "a", resume=True), run(tmp_path / "b"))


def test_resume_of_thinned_variables(tmp_path):
    small = Gibbs(20, 5, n_chains=2, keep=("square",), max_bytes=100)
    cut(tmp_path / "a", gibbs=small)
    resumed, whole = run(tmp_path / "a", resume=True, gibbs=small), run(tmp_path / "b", gibbs=small)
    same(resumed, whole)
    np.testing.assert_array_equal(resumed.running("theta"), whole.running("theta"))
    full = run(tmp_path / "c").flat("theta")
    np.testing.assert_allclose(whole.running("theta")[0], full.mean(0))
    np.testing.assert_allclose(whole.running("theta")[1], full.std(0, ddof=1))


class SameName(NamedTuple):
    theta: np.ndarray


@dataclass(frozen=True)
class Clash(Toy):
    """A parameter and a row variable of one name."""

    def initial_rows(self, prior, shard, key):
        return SameName(shard.x.copy())

    def draw_rows(self, prior, shard, rows, key):
        rows, statistics = super().draw_rows(prior, shard, rows, key)
        return SameName(rows.z), statistics

    def describe_rows(self, shard, rows):
        return {"theta": rows.theta, "square": rows.theta**2, "level": rows.theta}


def test_names_may_clash(tmp_path):
    cut(tmp_path / "a", model=Clash())
    same(run(tmp_path / "a", resume=True, model=Clash()), run(tmp_path / "b", model=Clash()))
    with pytest.raises(ValueError, match="keep must name variables of the rows"):
        run(tmp_path / "c", model=Clash(), gibbs=replace(GIBBS, keep=("theta",)))


def test_a_finished_run_can_be_read_back_and_made_longer(tmp_path):
    done = run(tmp_path / "a")
    same(run(tmp_path / "a", resume=True), done)
    longer = Gibbs(30, 5, n_chains=2, keep=("square",))
    same(run(tmp_path / "a", resume=True, gibbs=longer), run(tmp_path / "b", gibbs=longer))


def test_resume_without_a_checkpoint_starts(tmp_path):
    same(run(tmp_path / "new", resume=True), run(tmp_path / "other"))


def test_mean_field_resumes(tmp_path):
    def field(folder, **options):
        settings = MeanField(tolerance=1e-9, n_draws=3)
        shards = Toy().shards(X)
        return settings.run(Toy(), shards, seed=3, checkpoint=folder, every=0.0, **options)

    with pytest.raises(RuntimeError):
        field(tmp_path / "a", progress=stop_at(4))
    resumed, whole = field(tmp_path / "a", resume=True), field(tmp_path / "b")
    assert resumed.factor == whole.factor
    elbo = [p.tree["optimisation"]["elbo"].values for p in (resumed, whole)]
    np.testing.assert_array_equal(*elbo)


def test_only_files_that_count_are_kept_and_others_are_left_alone(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "polystick-state-3.tmp").write_bytes(b"torn")
    theirs = {
        "notes.txt",
        "thesis.tmp",
        "draws-2020.npz",
        "state-of-the-art.npz",
        "polystick-draws.npz",
    }
    for name in theirs:
        (folder / name).write_text("mine")
    run(folder)
    names = set(contents(folder))
    assert "polystick-state-3.tmp" not in names
    assert theirs | {"polystick-manifest.json", "polystick-state-25.npz"} <= names
    assert len([n for n in names if n.startswith("polystick-state-")]) == 1


def test_fewer_draws_than_there_are(tmp_path):
    run(tmp_path / "a")
    refused(
        tmp_path / "a",
        "holds 20 draws of each chain; got n_draws=5",
        gibbs=replace(GIBBS, n_draws=5),
    )


def test_a_longer_run_that_would_not_fit(tmp_path):
    run(tmp_path / "a")
    long = replace(GIBBS, n_draws=400, max_bytes=400 * 2 * 37 * 8 // 2)
    refused(tmp_path / "a", "square would have to be thinned .* raise max_bytes", gibbs=long)


# kill -9

LONG = Gibbs(60, 20, n_chains=2, keep=("square",))


def go_on(folder, progress=False):
    return run(folder, resume=True, gibbs=LONG, progress=progress)


def test_kill_9_and_resume(tmp_path):
    rng, kills = np.random.default_rng(1), 0
    while True:
        victim, told = start(go_on, tmp_path / "run")
        told.recv()  # at work
        time.sleep(rng.uniform(0.0, 0.3))
        if victim.is_alive() and kills < 3:
            victim.kill()
            kills += 1
        victim.join()
        told.close()
        if victim.exitcode == 0:
            break
    assert kills >= 2
    same(go_on(tmp_path / "run"), LONG.run(Toy(), Toy().shards(X), seed=3))


# what can't be used


def refused(folder, match, **options):
    before = contents(folder)
    with pytest.raises(CheckpointError, match=match):
        run(folder, resume=True, **options)
    assert contents(folder) == before


@pytest.fixture
def cut_run(tmp_path):
    cut(tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        ({"seed": 4}, "seed"),
        ({"x": X + 1}, "data"),
        ({"model": Toy(noise=0.9)}, "model"),
        ({"gibbs": Gibbs(20, 6, n_chains=2, keep=("square",))}, "n_burn"),
        ({"gibbs": replace(GIBBS, thin=2)}, "thin"),
        ({"gibbs": Gibbs(20, 5, n_chains=3)}, "keep, n_chains"),
    ],
)
def test_foreign(cut_run, options, difference):
    refused(cut_run, f"belongs to another run: it differs in {difference}", **options)


def test_damaged_state(cut_run):
    state = cut_run / "polystick-state-11.npz"
    content = bytearray(state.read_bytes())
    content[len(content) // 2] ^= 1
    state.write_bytes(content)
    refused(cut_run, "is damaged: its checksum does not fit")


def test_missing_draws(cut_run):
    (cut_run / "polystick-draws-8.npz").unlink()
    refused(cut_run, r"lacks polystick-draws-8\.npz")


@pytest.mark.parametrize("resume", [False, True])
def test_draws_that_lost_their_manifest_are_left_alone(cut_run, resume):
    (cut_run / "polystick-manifest.json").unlink()
    before = contents(cut_run)
    with pytest.raises(CheckpointError, match=r"holds polystick-draws-\d+.npz, but not .*restore"):
        run(cut_run, resume=resume)
    assert contents(cut_run) == before


def test_a_run_that_saved_nothing_leaves_nothing(tmp_path):
    cut(tmp_path, sweep=1)
    assert contents(tmp_path) == {}


def test_other_names_are_another_run(tmp_path):
    cut(tmp_path, coords={"square_dim": ["a", "b"]})
    refused(tmp_path, "it differs in names", coords={"square_dim": ["a", "c"]})
    run(tmp_path, resume=True, coords={"square_dim": ["a", "b"]})


def test_temporary_files_follow_no_links(tmp_path):
    (tmp_path / "run").mkdir()
    precious = tmp_path / "precious"
    precious.write_text("mine")
    for name in ("state-1.npz", "draws-1.npz", "manifest.json", "manifest", "state-1"):
        (tmp_path / "run" / f"polystick-{name}.tmp").symlink_to(precious)
    run(tmp_path / "run")
    assert precious.read_text() == "mine"
    assert not [*(tmp_path / "run").glob("*.tmp")]


def rewrite(folder, **changes):
    """Change what a manifest says, and make its checksum fit."""
    path = folder / "polystick-manifest.json"
    manifest = json.loads(path.read_text()) | changes
    del manifest["checksum"]
    path.write_text(json.dumps({**manifest, "checksum": checkpoints._checksum(manifest)}))


@pytest.mark.parametrize(
    "changes",
    [
        {"files": []},
        {"files": None},
        {"files": {"../../secret.npz": "0" * 64}},
        {"files": {"polystick-state-1.npz": "0" * 64}, "sweep": "../1"},
        {"identity": [1]},
        {"sweep": 3},
    ],
)
def test_a_manifest_by_a_stranger(cut_run, changes):
    rewrite(cut_run, **changes)
    refused(cut_run, "names files that no checkpoint has")


def test_a_manifest_too_deep_to_read(cut_run):
    (cut_run / "polystick-manifest.json").write_text("[" * 100_000)
    refused(cut_run, "can't be read as one")


def test_arrays_of_another_run_under_its_name(cut_run):
    state = cut_run / "polystick-state-11.npz"
    np.savez(state, theta=np.zeros(3))
    files = json.loads((cut_run / "polystick-manifest.json").read_text())["files"]
    sha = checkpoints.hashlib.sha256(state.read_bytes()).hexdigest()
    rewrite(cut_run, files={**files, state.name: sha})
    refused(cut_run, "holds other arrays than this run has")


def test_a_run_saves_itself_as_often_as_it_is_told(tmp_path):
    def saves(every):
        folder, seen = tmp_path / f"every {every}", []
        model = CorrelatedMultinomial(
            inference=Gibbs(8, 2, n_chains=1),
            random_state=1,
            n_jobs=1,
            checkpoint=folder,
            checkpoint_every=every,
            progress=lambda _: seen.append(len([*folder.glob("polystick-draws-*")])),
        )
        model.fit(np.random.default_rng(0).poisson(3, (5, 3)))
        return seen[-1]

    assert [saves(0.0), saves(1e6)] == [7, 0]  # told before the last save


def test_a_run_that_moved_says_what_is_different(cut_run):
    manifest = json.loads((cut_run / "polystick-manifest.json").read_text())
    assert {*manifest["machine"]} >= {"polystick", "numpy", "scipy", "numba", "blas", "cpu"}
    elsewhere = {**manifest["machine"], "numpy": "1.0", "cpu": "abacus"}
    rewrite(cut_run, machine=elsewhere)
    with pytest.warns(
        RuntimeWarning, match=r"made elsewhere \(numpy 1.0 there, \S+ here\); it goes"
    ):
        same(run(cut_run, resume=True), run(None))
    run(cut_run, resume=True)  # the last to write was this machine


# one writer


def test_two_runs_on_one_folder_one_is_told(tmp_path):
    def try_too(progress):
        if progress.sweep == 7:
            with pytest.raises(CheckpointError, match=f"in use by process {os.getpid()} on "):
                run(tmp_path, resume=True)
            told.append(progress.sweep)

    told = []
    done = run(tmp_path, progress=try_too)
    assert told == [7]
    same(done, run(None))
    same(run(tmp_path, resume=True), done)


def test_edited_manifest(cut_run):
    path = cut_run / "polystick-manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "sweep": 10}))
    refused(cut_run, "is damaged or was edited")


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b"{}"])
def test_no_manifest_at_all(cut_run, content):
    (cut_run / "polystick-manifest.json").write_bytes(content)
    refused(cut_run, "can't be read as one|is damaged")


def test_a_newer_format(cut_run, monkeypatch):
    monkeypatch.setattr(checkpoints, "FORMAT", 0)
    refused(cut_run, "has format 4, and this version of polystick reads 0")


def test_an_existing_checkpoint_is_not_overwritten(cut_run):
    before = contents(cut_run)
    with pytest.raises(CheckpointError, match="already holds a checkpoint; pass resume=True"):
        run(cut_run)
    assert contents(cut_run) == before


def test_unwritable_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="folder must be writable"):
        run(tmp_path / "file" / "run")


def test_resume_needs_a_folder():
    with pytest.raises(CheckpointError, match="name the checkpoint folder"):
        run(None, resume=True)


class NoRows:
    def save(self, folder, sweep):
        return {}


def test_a_full_disk_does_not_stop_the_run(tmp_path, monkeypatch):
    saver = Checkpoint(tmp_path / "run", {}, 0.0)
    saver.prepare()

    def full(*_):
        raise OSError(28, "No space left on device")

    assert saver.save(1, {"a": np.zeros(2)}, {}, NoRows())
    monkeypatch.setattr(checkpoints, "write_arrays", full)
    with pytest.warns(
        RuntimeWarning, match=r"No space left .* the one after sweep 1 is still there"
    ):
        assert not saver.save(2, {"a": np.zeros(2)}, {}, NoRows())
    saver = Checkpoint(tmp_path / "another", {}, 0.0)
    with pytest.warns(RuntimeWarning, match="No space left .* goes on, and there is none yet"):
        saver.save(1, {"a": np.zeros(2)}, {}, NoRows())


def test_nothing_is_unpickled(cut_run):
    path = cut_run / "polystick-state-11.npz"
    np.savez(path, evil=np.array([{}], dtype=object))
    manifest = json.loads((cut_run / "polystick-manifest.json").read_text())
    del manifest["checksum"]
    manifest["files"]["polystick-state-11.npz"] = checkpoints.hashlib.sha256(
        path.read_bytes()
    ).hexdigest()
    manifest["checksum"] = checkpoints._checksum(manifest)
    (cut_run / "polystick-manifest.json").write_text(json.dumps(manifest))
    refused(cut_run, "must hold plain arrays, and does not .*allow_pickle")


def test_fingerprints_know_where_a_part_ends():
    pairs = [
        (("ab", "c"), ("a", "bc")),
        (("a", "'b'"), ("a'b'", "'")),
        ([[1], 2], [[1, 2]]),
        (((1,), ()), ((), (1,))),
        ([1, 23], [12, 3]),
        ({"a": 1, "b": 2}, {"a": (1, "b"), "c": 2}),
        ([np.zeros(1), np.zeros(0)], [np.zeros(0), np.zeros(1)]),
    ]
    assert [fingerprint(a) == fingerprint(b) for a, b in pairs] == [False] * len(pairs)


def test_fingerprints_tell_things_apart():
    a = np.arange(6)
    different = [
        a,
        a + 1,
        a.reshape(2, 3),
        a.astype(float),
        [a],
        (a,),
        1,
        1.0,
        "1",
        Toy(),
        Toy(2.0),
    ]
    eye, large = scipy.sparse.eye_array(3, format="csr"), np.zeros(5000)
    changed = large.copy()
    changed[2500] = 1e-9
    different += [
        eye,
        2 * eye,
        {"a": large},
        {"a": changed},
        {"b": large},
        None,
        True,
        np.float32(1),
    ]
    assert len({fingerprint(thing) for thing in different}) == len(different)
    for unknown in (object(), np.array([{}], dtype=object), {1, 2}):
        with pytest.raises(TypeError, match="can't tell runs apart by"):
            fingerprint(unknown)
    assert fingerprint(Toy()) == fingerprint(Toy())
