# Everything starts here: each target works as the first command ever typed, given Rust and Python 3.11+.

PYTHON ?= python3
BIN := .venv/bin
# What is never imported is never compiled.
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r
# A package of this checkout: what it needs, and what builds it, is pinned and installed.
FROM_HERE := --quiet --disable-pip-version-check --no-deps --no-build-isolation
# A file's tests share what they measure once, so a file stays on one worker.
PYTEST := $(BIN)/python -m pytest --quiet --numprocesses auto --dist loadfile --no-loadscope-reorder
PROFILE := $(CURDIR)/target/profile
WHEEL_TARGETS ?= x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl
STUDIES ?= --fast
FUZZ_SECONDS ?= 60
FUZZ_SEED ?= 1000
# The last two bring the features that `make test` has: what one of them has compiled, the other does not compile again.
QUICK_CRATES := host sched scenario dev bench histogram
# What only benchmarks need.
BENCHES := vcpulab-bench/bench,vcpulab-recording/bench
FUZZ_TARGETS := scenario vector xentrace sched_text texts

# Commands are started hundreds of times: without compiled files each start takes three times as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help build pgo demo check test test-crates test-python reference bench bench-cores bench-counts bench-counts-keep \
	bench-growth bench-peers lint fmt docs evidence fuzz lock fuzz-scenarios real-xen real-kvm real-host site site-serve wheel \
	wheel-test web web-serve web-picture web-test

##@ Use

## The command line, at .venv/bin/vcpulab
build: .venv/installed
	$(BIN)/maturin develop --release --skip-install --quiet

## This list
help:
	@awk '/^##@ / { print "\n" substr($$0, 5) } /^## / { text = text (text ? sprintf("\n%20s", "") : "") substr($$0, 4) } \
	  /^[a-z-]+:/ && text { split($$1, name, ":"); printf "  %-18s%s\n", name[1], text } !/^##/ { text = "" }' $(firstword $(MAKEFILE_LIST))

# The packages come while the engine is compiled; the last lines install the command itself, and the evidence beside it.
.venv/installed: runtime.lock build.lock evidence/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "vcpulab needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	@echo "Building the engine and fetching the packages: two to four minutes, this once"
	$(PIP) build.lock
	$(PIP) runtime.lock & $(BIN)/maturin develop --release --skip-install --quiet && wait $$!
	PIP_QUIET=1 $(BIN)/maturin develop --release --quiet
	$(BIN)/python -m pip install $(FROM_HERE) --editable ./evidence
	touch $@

## The web-server experiment of Cherkasova, Gupta and Vahdat 2007, with a report
demo: build
	$(BIN)/vcpulab demo --out out/demo

## The playground, in out/web: any static host serves it (needs rustup, Node 20 and npm)
web: web/src/engine.wasm web/node_modules/.package-lock.json
	npm --prefix web run --silent check
	npm --prefix web run --silent build -- --logLevel warn

# What changes it is cargo's to say; a file that is as it was is not newer.
web/src/engine.wasm: FORCE
	rustup target list --installed | grep --quiet wasm32-wasip1 || rustup target add wasm32-wasip1
	cargo build --package vcpulab-wasm --profile web --target wasm32-wasip1 --locked --quiet
	@cmp --quiet target/wasm32-wasip1/web/vcpulab-wasm.wasm $@ || cp target/wasm32-wasip1/web/vcpulab-wasm.wasm $@

web/node_modules/.package-lock.json: web/package-lock.json
	npm --prefix web ci --silent --no-audit --no-fund
	touch $@

FORCE:

## The playground, at http://localhost:8000
web-serve: web
	$(PYTHON) -m http.server --bind localhost --directory out/web 8000

## Like `build`, compiled by a profile of `vcpulab bench`: see benches/README.md (needs rustup). What needs `build` undoes it
pgo: .venv/installed
	rustup component add llvm-tools
	RUSTFLAGS=-Cprofile-generate=$(PROFILE) $(BIN)/maturin develop --release --skip-install --quiet
	rm -rf $(PROFILE)  # what programs that helped to compile have left there
	$(BIN)/vcpulab bench
	"$$(rustc --print target-libdir)/../bin/llvm-profdata" merge --output $(PROFILE).profdata $(PROFILE)
	RUSTFLAGS=-Cprofile-use=$(PROFILE).profdata $(BIN)/maturin develop --release --skip-install --quiet

##@ Change

## Lint, and the tests that are marked `quick`: for every save
check: lint
	cargo test $(QUICK_CRATES:%=--package vcpulab-%) --lib --locked --quiet
	$(PYTEST) -m "quick and not browser and not slow"

## All tests: the crates, the Python front, and whether generated files are up to date; K="lint and not kvm" runs the tests of
## the front with such names
test: $(if $(K),,test-crates) test-python

## The tests of the crates only
test-crates:
	cargo test --workspace --exclude vcpulab-python --locked --quiet

## The tests of the Python front only, which test the binding, too
test-python: build .venv/tools
	$(PYTEST) $(if $(K),-k "$(K)")

## Formatting, lints, types, and circles of imports in Python; those in Rust are a test
lint: build .venv/tools .venv/stubs
	cargo fmt --check
	cargo clippy --workspace --all-targets --features $(BENCHES) --locked -- --deny warnings
	cargo fmt --manifest-path examples/lottery-rust/Cargo.toml --check
	cargo clippy --manifest-path examples/lottery-rust/Cargo.toml --target-dir target/examples --all-targets --locked -- \
	  --deny warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/python tests/empty_names.py
	$(BIN)/mypy

# What only developers need: test and lint tools, notebooks, Dask.
.venv/tools: requirements.lock .venv/installed
	$(PIP) requirements.lock
	touch $@

# The stub of the engine against the engine. It spoils the cache of mypy, and takes half a minute.
.venv/stubs: .venv/tools python/vcpulab/_engine.pyi $(wildcard crates/python/src/*.rs) | build
	$(BIN)/python -m mypy.stubtest vcpulab._engine --mypy-config-file pyproject.toml
	touch $@

## Formats all sources, and fixes what lints can fix
fmt: .venv/tools
	cargo fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

## Reference pages and the schema, from the program itself
docs: build .venv/tools
	cargo run --quiet --locked --package vcpulab-dev -- generate
	PYTHONPATH=evidence/page $(BIN)/python docs/generate.py
	cargo doc --workspace --no-deps --locked

## Compares digests of scenarios, vectors, studies and searches with kept ones: for changes that should change no result
reference: build .venv/tools
	$(BIN)/python tests/reference/digests.py compare

## The playground in a real Chromium
web-test: build .venv/tools
	$(PYTEST) tests/playground

## Every fuzz target for a minute, or FUZZ_SECONDS (needs a nightly toolchain, cargo-fuzz and, for the last, Linux)
fuzz: fuzz-scenarios
	mkdir -p $(FUZZ_TARGETS:%=fuzz/corpus/%) fuzz/artifacts/texts
	cargo +nightly fuzz run scenario fuzz/corpus/scenario fuzz/seeds/scenario crates/scenario/bad scenarios \
	  -- -max_total_time=$(FUZZ_SECONDS) -dict=fuzz/scenario.dict
	cargo +nightly fuzz run vector fuzz/corpus/vector fuzz/seeds/vector -- -max_total_time=$(FUZZ_SECONDS)
	cargo +nightly fuzz run xentrace fuzz/corpus/xentrace fuzz/seeds/xentrace -- -max_total_time=$(FUZZ_SECONDS)
	cargo +nightly fuzz run sched_text fuzz/corpus/sched_text fuzz/seeds/sched_text -- -max_total_time=$(FUZZ_SECONDS)
	$(PIP) fuzz/requirements.lock
	PYTHONPATH=tests $(BIN)/python fuzz/fuzz_targets/fuzz_texts.py fuzz/corpus/texts fuzz/seeds/texts tests/recordings \
	  -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -artifact_prefix=fuzz/artifacts/texts/

## Random scenarios over the whole schema for a minute, or FUZZ_SECONDS, from FUZZ_SEED on
fuzz-scenarios: build .venv/tools
	PYTHONPATH=tests $(BIN)/python fuzz/fuzz_targets/fuzz_scenarios.py $(FUZZ_SEED) $(FUZZ_SECONDS)

## Pins every Python package, with hashes (needs uv)
lock:
	uv pip compile pyproject.toml --all-extras --group tools --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" --quiet --output-file requirements.lock
	uv pip compile --group build --universal --python-version 3.11 --generate-hashes --constraints requirements.lock \
	  --custom-compile-command "make lock" --quiet --output-file build.lock
	uv pip compile pyproject.toml --extra report --extra top --extra tune --extra place --universal \
	  --python-version 3.11 --generate-hashes --constraints requirements.lock \
	  --custom-compile-command "make lock" --quiet --output-file runtime.lock
	uv pip compile --group wheel --universal --python-version 3.11 --generate-hashes --constraints requirements.lock \
	  --custom-compile-command "make lock" --quiet --output-file wheel.lock
	uv pip compile --group fuzz --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" --quiet --output-file fuzz/requirements.lock

##@ Measure

## How fast the engine is on this machine
bench: build
	cargo bench --package vcpulab-bench --features bench --locked
	$(BIN)/vcpulab bench

## What a second processor gives to a run, a sweep and a search
bench-cores: build
	$(BIN)/python benches/cores.py

## Instructions of whole runs, part by part (needs valgrind)
bench-counts:
	$(PYTHON) benches/counts.py

## The counts that `make test` compares with, kept anew in benches/counts.json: say why in benches/README.md (needs valgrind)
bench-counts-keep:
	$(PYTHON) benches/counts.py --keep

## Instructions for each decision on hosts of 8 to 512 pCPUs (needs valgrind)
bench-growth:
	$(PYTHON) benches/growth.py

## Other simulators on the same work (fetches SimPy, SimSo and CloudSim Plus into target/peers; names what else is missing)
bench-peers:
	$(PYTHON) benches/peers/peers.py

## What docs/validation.md says, measured anew: half an hour, a third of it if little has changed
evidence: build .venv/tools
	$(BIN)/python evidence/page/measure.py

## Records a real Xen in QEMU's emulation, and runs our own tools on it: all of real-xen/experiments.toml, or REAL_XEN="name
## name --seed 1" (takes minutes each; needs Debian's apt-get, as root, and gcc). ADVICE=1: tunes twins of recordings for
## real-xen/goals.toml, sets what was advised on the real Xen, and records again
real-xen: build .venv/tools
	$(BIN)/python real-xen/$(if $(ADVICE),advise,record).py $(REAL_XEN)

## Records Linux's CFS and EEVDF with control groups, in QEMU's emulation: all of real-kvm/experiments.toml with all kernels that
## apt has, or REAL_KVM="name name --kernel 6.12" (takes a minute each; needs Debian's apt-get, as root, and gcc)
real-kvm: build
	$(BIN)/python real-kvm/record_kvm.py $(REAL_KVM)

## Records the scheduler of this machine for two minutes, as root: `sudo make real-host`, or REAL_HOST="hogs --seconds 5" (needs
## perf or tracefs; no guest runs, and nothing is left behind)
real-host:
	$(PYTHON) real-kvm/real_host.py $(REAL_HOST)

##@ Publish

## Wheels for every Linux, with one file for all Pythons from 3.11, and a source distribution, in out/wheel (needs rustup);
## WHEEL_TARGETS="x86_64-unknown-linux-gnu" makes one of them
wheel: .venv/installed
	$(PIP) wheel.lock
	rustup target add $(WHEEL_TARGETS)
	PATH="$(CURDIR)/$(BIN):$$PATH" && for target in $(WHEEL_TARGETS); do \
	  maturin build --release --strip --zig --target $$target --out out/wheel || exit 1; done
	$(BIN)/maturin sdist --out out/wheel
	$(BIN)/python -m pip wheel $(FROM_HERE) --wheel-dir out/wheel ./evidence

## This machine's wheel where nothing else is installed: from nothing to a first picture; then the evidence
wheel-test:
	rm -rf out/wheel-test
	$(PYTHON) -m venv out/wheel-test
	out/wheel-test/bin/pip install --quiet --disable-pip-version-check "$$(ls out/wheel/*manylinux*_$$(uname -m).whl)[report]"
	cd out/wheel-test && bin/vcpulab init web.toml && bin/vcpulab run web.toml && bin/vcpulab conformance >conformance.txt \
	  && bin/vcpulab whatif web.toml --set web.weight=512 --report picture.html
	out/wheel-test/bin/pip install --quiet --disable-pip-version-check --no-deps out/wheel/vcpulab_evidence-*.whl
	cd out/wheel-test && bin/vcpulab study list && bin/vcpulab demo

## The site, in out/site/html: any static host can serve it. The studies' reports on it are of a short look of a minute, kept
## until what is measured changes; STUDIES= runs them in full, which takes hours
site: build .venv/tools web
	$(BIN)/vcpulab study report all $(STUDIES) --out out/site/studies
	$(BIN)/python site/pages.py
	$(BIN)/zensical build --strict

## The site, at http://localhost:8000
site-serve: site
	$(BIN)/python -m http.server --directory out/site/html

## The picture of the playground in the documentation
web-picture: web
	cd web && node tests/screenshot.mjs ../docs/images/playground.png
