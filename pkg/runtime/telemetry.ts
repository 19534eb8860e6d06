import { basename } from "node:path";
import {
  type Attributes,
  context,
  type Histogram,
  type MeterProvider,
  metrics,
  propagation,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import type { Exec } from "@tscni/libcni";
import { CniError, messageOf } from "@tscni/types";

/*
 * OpenTelemetry's API alone: without an SDK that the host program sets up, all of this does nothing.
 * Spans: cni.setup, cni.remove, cni.check, cni.status, cni.gc, and below them one for each run of a plugin.
 * Metrics: cni.operation.duration and cni.plugin.duration, histograms in seconds, which count as well.
 */
const scope = "@tscni/runtime";

/** Runs an operation in a span of its own and notes its duration and how it ended. */
export function observe<T>(operation: string, attributes: Attributes, work: () => Promise<T>): Promise<T> {
  const labels = { "cni.operation": operation };
  return inSpan(
    `cni.${operation}`,
    SpanKind.INTERNAL,
    { ...labels, ...attributes },
    "cni.operation.duration",
    labels,
    work,
  );
}

/** Plugins found and run as before, each run in a span; the trace's context goes to the plugin in its environment. */
export function observedExec(exec: Exec): Exec {
  return {
    find: (type, paths) => exec.find(type, paths),
    versions: (file, options) => exec.versions(file, options),
    run(file, call, stdin, options) {
      const labels = { "cni.plugin.type": basename(file), "cni.command": call.command };
      const attributes = {
        ...labels,
        "cni.container.id": call.containerId,
        "cni.interface.name": call.ifName,
        ...(options.network === undefined ? {} : { "cni.network.name": options.network }),
      };
      const name = `${call.command} ${labels["cni.plugin.type"]}`;
      return inSpan(name, SpanKind.CLIENT, attributes, "cni.plugin.duration", labels, () =>
        exec.run(file, call, stdin, { ...options, env: { ...options.env, ...traceContext() } }),
      );
    },
  };
}

function inSpan<T>(
  name: string,
  kind: SpanKind,
  attributes: Attributes,
  metric: string,
  labels: Attributes,
  work: () => Promise<T>,
): Promise<T> {
  const begin = performance.now();
  const done = (error?: unknown) => {
    const failed = error === undefined ? {} : { "error.type": errorType(error) };
    histogram(metric).record((performance.now() - begin) / 1000, { ...labels, ...failed });
  };
  return trace.getTracer(scope).startActiveSpan(name, { kind, attributes }, async (span) => {
    try {
      const result = await work();
      done();
      return result;
    } catch (error) {
      done(error);
      span.setAttribute("error.type", errorType(error));
      span.setStatus({ code: SpanStatusCode.ERROR, message: messageOf(error) });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Few values, as a metric's attribute should have: the spec's code, or the class. */
function errorType(error: unknown): string {
  if (error instanceof CniError) return String(error.code);
  return error instanceof Error ? error.name : typeof error;
}

/** W3C's headers as variables, as Go's libcni hands them on: TRACEPARENT, TRACESTATE, BAGGAGE. */
function traceContext(): Record<string, string> {
  const carrier: Record<string, string> = {};
  propagation.inject(context.active(), carrier);
  const names = ["traceparent", "tracestate", "baggage"];
  return Object.fromEntries(
    names.flatMap((name) => (carrier[name] ? [[name.toUpperCase(), carrier[name]]] : [])),
  );
}

/** Histograms of the provider that is set now: the host program may set it after we were loaded. */
const histograms = new WeakMap<MeterProvider, Map<string, Histogram>>();

function histogram(name: string): Histogram {
  const provider = metrics.getMeterProvider();
  const known = histograms.get(provider) ?? new Map<string, Histogram>();
  histograms.set(provider, known);
  const found = known.get(name) ?? provider.getMeter(scope).createHistogram(name, { unit: "s" });
  known.set(name, found);
  return found;
}
