# syntax=docker/dockerfile:1
ARG NODE_IMAGE=node:22.23.3-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY scripts/build.mjs scripts/
COPY src src
# --build-arg EBB_COMMIT=$(git rev-parse HEAD), for `ebb --version`: the image gets no Git history to ask.
ARG EBB_COMMIT
RUN npm run build

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM ${NODE_IMAGE}
ENV NODE_ENV=production
COPY --from=dependencies /app/node_modules /app/node_modules
COPY --from=build /app/dist /app/dist
COPY package.json LICENSE /app/
COPY policies /app/policies
COPY schema /app/schema
COPY docs/runbook.md /app/docs/
# Where ebb.yaml and policies/ are looked for, and where an embedded queue would live; and where state outlives the container.
RUN ln -s /app/dist/cli/main.js /usr/local/bin/ebb && install -d -o node -g node /ebb && install -d -m 1777 /var/lib/ebb
WORKDIR /ebb
USER node
EXPOSE 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9464/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["ebb"]
CMD ["run"]
