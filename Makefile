# Two commands for a newcomer: `make demo` and `make test`. One for CI: `make check`.
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
FRAMEWORKS := .venv-frameworks
ROS2 := .venv-ros2
DEMO := logs/demo

.PHONY: help demo test test-all test-fast newcomer bench pictures check types style structure docs format clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.sim: pyproject.toml .ci/setup
	bash .ci/setup sim

$(VENV)/.dev: pyproject.toml .ci/setup .ci/build-ros-workspace $(wildcard ros_ws/src/*/*.txt ros_ws/src/*/*/*.msg ros_ws/src/*/*/*.srv)
	bash .ci/setup dev

$(FRAMEWORKS)/.installed: $(VENV)/.dev tests/frameworks/requirements.txt .ci/setup-frameworks
	bash .ci/setup-frameworks

$(ROS2)/.installed: $(VENV)/.dev tests/ros2/requirements.txt .ci/setup-ros2
	bash .ci/setup-ros2

demo: $(VENV)/.sim ## Install; run, score and report three PointNav episodes in the bundled apartment
	$(BIN)/robot-runtime run --count 3 --seed 6 --out $(DEMO) --overwrite
	$(BIN)/robot-runtime report $(DEMO) --out $(DEMO)/report.html --picture $(DEMO)/demo.png
	@echo "next: source $(VENV)/bin/activate; then robot-runtime run --count 20 --out logs/mine"

test: $(VENV)/.dev $(FRAMEWORKS)/.installed $(ROS2)/.installed ## Install with development tools and run the tests
	$(BIN)/pytest
	$(FRAMEWORKS)/bin/python -m pytest tests/frameworks
	$(ROS2)/bin/python -m pytest tests/ros2

test-all: $(VENV)/.dev $(FRAMEWORKS)/.installed $(ROS2)/.installed ## Run every variant of every test: some forty minutes
	$(BIN)/pytest -m ""
	$(FRAMEWORKS)/bin/python -m pytest -m "" tests/frameworks
	$(ROS2)/bin/python -m pytest -m "" tests/ros2

test-fast: $(VENV)/.dev ## Run the tests without those marked slow or exhaustive: most of them, in three minutes on two cores
	$(BIN)/pytest -n logical -m "not slow and not exhaustive"

newcomer: $(VENV)/.dev ## Run every command of README, first page and tutorials as it is copied from them, in full
	$(BIN)/pytest -n 0 -m "" tests/newcomer

bench: $(VENV)/.dev ## Measure, and print a table: make bench NAME=sim ARGS="--count 10"
	$(BIN)/python -m tests.benchmarks $(NAME) $(ARGS)

pictures: $(VENV)/.dev ## Make the documentation's pictures: make pictures NAMES="demo.png console.png"
	$(BIN)/python -m tests.pictures $(NAMES)

check: $(VENV)/.dev ## What CI runs: format, lint, types, import layers, structure, tests
	$(MAKE) -j 2 --output-sync=target types style structure docs $(FRAMEWORKS)/.installed $(ROS2)/.installed
	$(BIN)/pytest
	$(FRAMEWORKS)/bin/python -m pytest tests/frameworks
	$(ROS2)/bin/python -m pytest tests/ros2

types: $(VENV)/.dev
	$(BIN)/mypy

style: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

structure: $(VENV)/.dev
	$(BIN)/lint-imports
	$(BIN)/python -m tests.structure --check

docs: $(VENV)/.dev ## Build the documentation site into build/site, without a network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

format: $(VENV)/.dev ## Rewrite the code in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) $(FRAMEWORKS) $(ROS2) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis *.egg-info build dist ros_ws/build ros_ws/devel
