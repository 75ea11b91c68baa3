# What people type; the build itself is Meson's.
#
#   make              build into build/
#   make demo         install what is missing, build, show it live and simulated
#   make demo-slurm   the same on a Slurm of its own (as root)
#   make check        install what is missing, build, run every test
#   make check-fresh  the last two in an empty Debian 12 (as root)
#   make deb          Debian's packages, in build/deb
#   make check-cgroup2   cgroups of version 2 alone, with systemd: a guest of qemu (as root)
#   make check-packages  install, use, upgrade and purge them in an empty Debian 12 (as root)
#   make bench        how fast: figures per second and per decision
#   make soak         the slow tests, and 20 million inputs for the parsers
#   make coverage     which lines and branches the tests reach
#   make evidence     measure all that is claimed, write docs/evidence; takes hours
#   make pictures     the dashboard's pictures in docs/
#   make format tidy install clean

BUILD   = build
prefix  = /usr/local
DESTDIR =

DEMO = $(BUILD)/berth compare --cluster mixed-112 --workload mixed \
       --policy fifo-backfill --policy las --policy gavel-las --policy berth \
       --seeds 3 --report berth-report.html

all: $(BUILD)/build.ninja
	@ninja --quiet -C $(BUILD)

$(BUILD)/build.ninja:
	@tools/setup -n build
	@meson setup $(BUILD) --buildtype=release --prefix="$(prefix)" >$(BUILD).log || \
		{ cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log

demo:
	@tools/setup build
	@$(MAKE) --no-print-directory all
	@tools/demo $(BUILD)
	@echo; echo "The same engine, simulated: four policies on a made-up workload of trial jobs, gangs and elastic jobs"
	$(DEMO)

demo-slurm:
	@tools/setup build
	@$(MAKE) --no-print-directory all
	@tools/demo-slurm $(BUILD)

check:
	@tools/setup check
	@tools/check

soak:
	@tools/setup check
	@tools/check --soak
	@tools/fuzz --inputs 20000000 || test $$? = 77

coverage:
	@tools/setup check
	@tools/coverage --files

check-fresh:
	@tools/setup fresh
	@tools/check-fresh

deb:
	@tools/setup deb
	@tools/deb

check-cgroup2: all
	@tools/setup guest
	@ninja --quiet -C $(BUILD) tests/unit_cgroup tests/unit_local tests/libfake_nvml.so
	@tools/check-cgroup2 || test $$? = 77

check-packages: deb
	@tools/setup fresh
	@tools/check-packages

bench: all
	$(BUILD)/berth bench all
	@ninja --quiet -C $(BUILD) tests/bench_resort
	@$(BUILD)/tests/bench_resort

evidence: all
	@tools/setup check
	@tools/evidence

pictures: all
	@node web/dev/pictures.mjs docs/pictures $(BUILD)/web

format:
	@git ls-files -z '*.c' '*.cc' '*.h' | xargs -0 -r clang-format -i

tidy: all
	@tools/tidy $(BUILD)

install: all
	@meson configure $(BUILD) -Dprefix="$(prefix)"
	@DESTDIR="$(DESTDIR)" meson install -C $(BUILD) --quiet

clean:
	rm -rf build build-asan build-clang build-coverage build-fuzz berth-report.html

.PHONY: all demo demo-slurm check soak coverage evidence check-fresh check-cgroup2 deb check-packages bench pictures \
	format tidy install clean
