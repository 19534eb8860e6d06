import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { context, metrics, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fails, Lab, prints } from "../libcni/testing/lab.ts";
import { Networking } from "./index.ts";

let lab: Lab;
let networking: Networking;
const saved = () => readFileSync(join(lab.dir, "traceparent"), "utf8");

beforeEach(() => {
  lab = new Lab();
  const configDir = join(lab.dir, "net.d");
  mkdirSync(configDir);
  const remember = `printf '%s' "$TRACEPARENT" > ${lab.dir}/traceparent`;
  lab.plugin("alpha", { ADD: `${remember}; ${prints({ cniVersion: "1.1.0" })}`, CHECK: fails(103, "gone") });
  const list = { cniVersion: "1.1.0", name: "a", plugins: [{ type: "alpha" }] };
  writeFileSync(join(configDir, "a.conflist"), JSON.stringify(list));
  networking = new Networking({ pluginDirs: [lab.bin], configDir, cacheDir: lab.cacheDir });
  networking.load("directory");
});
afterEach(() => {
  for (const api of [trace, metrics, context, propagation]) api.disable();
  lab.close();
});

describe.skipIf(process.platform === "win32")("telemetry", () => {
  test("is nothing unless the host program sets it up", async () => {
    await networking.setup("c", "/n");
    expect(saved()).toBe("");
  });

  test("spans of operations and of the plugins' runs, whose context the plugins get", async () => {
    const exporter = new InMemorySpanExporter();
    trace.setGlobalTracerProvider(
      new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
    );
    context.setGlobalContextManager(new AsyncLocalStorageContextManager());
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());

    await networking.setup("c", "/n");
    const [plugin, setup] = exporter.getFinishedSpans();
    expect([plugin!.name, setup!.name]).toEqual(["ADD alpha", "cni.setup"]);
    expect(plugin!.parentSpanContext?.spanId).toBe(setup!.spanContext().spanId);
    expect(plugin!.attributes).toMatchObject({ "cni.container.id": "c", "cni.interface.name": "eth0" });
    const { traceId, spanId } = plugin!.spanContext();
    expect(saved()).toBe(`00-${traceId}-${spanId}-01`);

    exporter.reset();
    await expect(networking.check("c", "/n")).rejects.toThrow("gone");
    expect(
      exporter
        .getFinishedSpans()
        .map(({ name, status: { code }, attributes }) => [name, code, attributes["error.type"]]),
    ).toEqual([
      ["CHECK alpha", 2, "103"],
      ["cni.check", 2, "NetworkingError"],
    ]);
  });

  test("durations as histograms, by operation and by plugin", async () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter });
    metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
    await networking.setup("c", "/n");
    await networking.remove("c", "/n");
    await reader.forceFlush();
    const found = exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
    const points = found.flatMap(({ descriptor: { name }, dataPoints }) =>
      dataPoints.map(({ attributes, value }) => [
        name,
        attributes["cni.operation"] ?? attributes["cni.command"],
        (value as { count: number }).count,
      ]),
    );
    expect(points).toContainEqual(["cni.operation.duration", "setup", 1]);
    expect(points).toContainEqual(["cni.operation.duration", "remove", 1]);
    expect(points).toContainEqual(["cni.plugin.duration", "ADD", 1]);
    expect(points).toContainEqual(["cni.plugin.duration", "DEL", 1]);
    await reader.shutdown();
  });
});
