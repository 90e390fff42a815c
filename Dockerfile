# One image per service: docker build --target customer .
ARG GO_VERSION=1.26

FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-trixie AS build
ARG TARGETOS TARGETARCH
ENV CGO_ENABLED=0 GOCACHE=/cache/build GOMODCACHE=/cache/mod
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/cache \
    GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -o /out/ ./cmd/...

# No shell, no package manager, not root. The health check is a command of the binary, as nothing else is there to ask.
FROM gcr.io/distroless/static-debian13:nonroot AS customer
COPY --from=build /out/customer /customer
EXPOSE 8080 8081
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --start-interval=1s --retries=2 CMD ["/customer", "healthcheck"]
ENTRYPOINT ["/customer"]

FROM gcr.io/distroless/static-debian13:nonroot AS notification
COPY --from=build /out/notification /notification
EXPOSE 8082
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --start-interval=1s --retries=2 CMD ["/notification", "healthcheck"]
ENTRYPOINT ["/notification"]

FROM build AS build-examples
ARG TARGETOS TARGETARCH
RUN --mount=type=cache,target=/cache \
    GOOS=$TARGETOS GOARCH=$TARGETARCH go build -C examples -trimpath -o /out/ ./cmd/...

FROM gcr.io/distroless/static-debian13:nonroot AS order
COPY --from=build-examples /out/order /order
EXPOSE 8100 8101
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --start-interval=1s --retries=2 CMD ["/order", "healthcheck"]
ENTRYPOINT ["/order"]

FROM gcr.io/distroless/static-debian13:nonroot AS payments
COPY --from=build-examples /out/payments /payments
EXPOSE 8102 8103
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --start-interval=1s --retries=2 CMD ["/payments", "healthcheck"]
ENTRYPOINT ["/payments"]

FROM gcr.io/distroless/static-debian13:nonroot AS ledger
COPY --from=build-examples /out/ledger /ledger
EXPOSE 8110 8111
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --start-interval=1s --retries=2 CMD ["/ledger", "healthcheck"]
ENTRYPOINT ["/ledger"]

FROM gcr.io/distroless/static-debian13:nonroot AS forwarder
COPY --from=build-examples /out/forwarder /forwarder
EXPOSE 8120 8121
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --start-interval=1s --retries=2 CMD ["/forwarder", "healthcheck"]
ENTRYPOINT ["/forwarder"]
