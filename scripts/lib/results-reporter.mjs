/**
 * A vitest reporter that appends a line for every test to the file $TSCNI_RESULTS, for scripts/test to sum up:
 * "passed|failed|skipped <TAB> lane <TAB> test <TAB> reason".
 */
import { appendFileSync } from "node:fs";

const { TSCNI_RESULTS: file, TSCNI_LANE: lane, TSCNI_GO_BIN } = process.env;

export default class ResultsReporter {
  onTestRunEnd(modules, unhandled) {
    const lines = unhandled.map((error) => line("failed", "outside of a test", messageOf(error)));
    for (const module of modules) {
      const path = module.relativeModuleId;
      for (const error of module.errors()) lines.push(line("failed", path, messageOf(error)));
      for (const test of module.children.allTests()) {
        const { state, note, errors } = test.result();
        lines.push(line(state, `${path} > ${test.fullName}`, reasonOf(state, note, errors)));
      }
    }
    appendFileSync(file, lines.join(""));
  }
}

function reasonOf(state, note, errors = []) {
  if (state === "failed") return messageOf(errors[0]);
  if (state === "skipped")
    return note ?? (TSCNI_GO_BIN ? "it says no reason" : "no Go plugins to compare with");
  return state === "passed" ? "" : "did not run to its end";
}

const messageOf = (error) => (error?.message ?? String(error)).split("\n")[0];

function line(state, name, reason) {
  const known = ["passed", "skipped"].includes(state) ? state : "failed";
  const fields = [known, lane, name, reason];
  return `${fields.map((field) => String(field).replaceAll(/[\t\n\r]/g, " ")).join("\t")}\n`;
}
