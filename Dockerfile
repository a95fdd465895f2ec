# Sexton's image. `make image` builds it on any machine; where pip finds an index, `docker build .` does as well.
#
# BASE_IMAGE   has Python 3.11 or newer, and is all that the image has besides what is installed here. Neither a shell
#              nor pip nor any other program of it is used at run time.
# BUILD_IMAGE  where all is installed: the same Python at the same place, with a shell, venv and pip. It is the base
#              itself, unless that one has no shell.
ARG BASE_IMAGE=python:3.13-slim-bookworm
ARG BUILD_IMAGE=${BASE_IMAGE}


# Wheels of all that Sexton needs. Only here an index may be asked, and only for what the lock files pin.
FROM ${BUILD_IMAGE} AS wheels
# pip reads these: another index; or none, and a folder mounted here that has everything.
ARG PIP_INDEX_URL
ARG PIP_NO_INDEX
ARG PIP_FIND_LINKS
WORKDIR /source
RUN python3 -m venv /tools
COPY requirements/ requirements/
RUN /tools/bin/python -m pip wheel --only-binary :all: --require-hashes --wheel-dir /wheels \
        --requirement requirements/run.txt --requirement requirements/image.txt \
    && /tools/bin/python -m pip install --only-binary :all: --require-hashes --requirement requirements/build.txt


# Sexton's own wheel, and its hash in a lock file of its own.
FROM wheels AS sexton
COPY pyproject.toml README.md LICENSE ./
COPY operator/ operator/
RUN /tools/bin/python -m pip wheel --no-index --no-deps --no-build-isolation --wheel-dir /own . \
    && for wheel in /own/sexton-*.whl; do \
        echo "$wheel --hash=sha256:$(sha256sum "$wheel" | cut -d ' ' -f 1)" >>/own/sexton.txt; \
    done


# The program: an environment without pip. Bytecode is made now, since at run time nobody may write it; it is never
# compared with its source, which can't change either. Of the Kubernetes client's generated modules only those that the
# operator imports get any: for all of them it would be 48 MB that nobody reads.
FROM wheels AS program
ENV COMPILE="/opt/sexton/bin/python -B -m compileall -q -j 0 --invalidation-mode unchecked-hash"
RUN python3 -m venv --without-pip /opt/sexton \
    && /tools/bin/python -m pip --python /opt/sexton/bin/python install --no-index --find-links /wheels \
        --require-hashes --no-compile --requirement requirements/run.txt --requirement requirements/image.txt \
    && $COMPILE -x '/kubernetes/.*/(api|models)/' /opt/sexton/lib
COPY --from=sexton /own /own
RUN /tools/bin/python -m pip --python /opt/sexton/bin/python install --no-index --no-deps \
        --require-hashes --no-compile --requirement /own/sexton.txt \
    && $COMPILE /opt/sexton/lib/python*/site-packages/sexton \
    && /opt/sexton/bin/python -B -c 'import sys, sexton.control.operating; print(*(module.__file__ \
        for name, module in sys.modules.items() if name.startswith("kubernetes.")), sep="\n")' | $COMPILE -i -


FROM ${BASE_IMAGE}
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="Sexton" \
      org.opencontainers.image.description="Launches a Job at every fire of a Schedule, exactly once, and accounts for each one" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/sexton/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
COPY --from=program /opt/sexton /opt/sexton
WORKDIR /
# A number, so that Kubernetes can tell that it is not root. Nothing is written anywhere: the root may be read-only.
USER 65532:65532
# Process 1 is dumb-init: 20 kB of C in a wheel, so that it comes with a hash as all else does, and from no other place.
# It passes signals on, ends with the operator's exit code, and reaps what others leave behind (probes, `kubectl exec`),
# which the operator does not. One more Python just for that would take some 10 MB of memory in each pod.
ENTRYPOINT ["/opt/sexton/bin/dumb-init", "--", "/opt/sexton/bin/sexton"]
CMD ["run"]
