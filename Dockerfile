# An image of tfmann for CPUs, with exactly the packages of requirements.lock.
#
#   docker build -t tfmann .
#   docker run --rm -it --user "$(id -u):$(id -g)" -v "$PWD:/work" tfmann demo
#
# The arguments after the image's name are a command of tfmann. /work has the runs and the text. Without
# --user and -v, an ordinary user writes to a /work that goes with the container. A server or the page,
# and TensorBoard:
#
#   docker run --rm -p 127.0.0.1:8000:8000 tfmann play --host=0.0.0.0
#   docker run --rm -p 127.0.0.1:6006:6006 -v "$PWD:/work" --entrypoint=tensorboard \
#       tfmann --logdir=runs --host=0.0.0.0
FROM python:3.11-bookworm AS build
WORKDIR /source
RUN python -m venv /opt/tfmann
# Packages change seldom, so their layer comes first.
COPY requirements.lock ./
RUN /opt/tfmann/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY LICENSE pyproject.toml setup.cfg setup.py ./
COPY docs/package.md docs/
COPY hparams hparams
COPY data data
COPY tfmann tfmann
RUN /opt/tfmann/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
    && /opt/tfmann/bin/pip check

# The same Python without compilers.
FROM python:3.11-slim-bookworm
COPY --from=build /opt/tfmann /opt/tfmann
# The user may have no home directory, so caches of fonts and the like go to /tmp.
ENV PATH=/opt/tfmann/bin:$PATH HOME=/tmp TF_CPP_MIN_LOG_LEVEL=3
RUN useradd --uid 1000 --no-create-home tfmann && install -d -o tfmann -g tfmann /work
USER tfmann
WORKDIR /work
ENTRYPOINT ["tfmann"]
CMD ["-h"]
