"""Public benchmarks, played by their own packages in virtual environments of their own, by the agents of rollouts."""

from envscaler.bench.catalogue import BENCHMARKS, Benchmark, benchmark_named
from envscaler.bench.comparison import BenchComparison, compare_bench
from envscaler.bench.contents import Contents, contents_of
from envscaler.bench.held_out import run_held_out
from envscaler.bench.installation import Installation, Installed, installations, open_benchmark
from envscaler.bench.installing import install
from envscaler.bench.overlap import Overlap, OverlapReport, overlap_with
from envscaler.bench.report import BenchReport, bench_report
from envscaler.bench.run import run_bench
from envscaler.bench.world import BenchWorld

__all__ = [
    "BENCHMARKS",
    "BenchComparison",
    "BenchReport",
    "BenchWorld",
    "Benchmark",
    "Contents",
    "Installation",
    "Installed",
    "Overlap",
    "OverlapReport",
    "bench_report",
    "benchmark_named",
    "compare_bench",
    "contents_of",
    "install",
    "installations",
    "open_benchmark",
    "overlap_with",
    "run_bench",
    "run_held_out",
]
