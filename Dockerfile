# The image of one program: docker build --build-arg PROGRAM=cmd/notification .
ARG GO_VERSION=1.26

FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-trixie AS build
ARG TARGETOS TARGETARCH
ENV CGO_ENABLED=0 GOCACHE=/cache/build GOMODCACHE=/cache/mod
WORKDIR /src
COPY . .
ARG PROGRAM=cmd/customer
# One build at a time: the next one finds what this one compiled.
RUN --mount=type=cache,target=/cache,sharing=locked \
    GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w" -o /service ./$PROGRAM

# No shell, no package manager, not root. The program checks its own health, because the image has no other program.
FROM gcr.io/distroless/static-debian13:nonroot
COPY --from=build /service /service
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --start-interval=1s --retries=2 CMD ["/service", "healthcheck"]
ENTRYPOINT ["/service"]
