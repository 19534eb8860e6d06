import { nearest } from "@tscni/conf";
import {
  atLeast,
  currentVersion,
  isSpecVersion,
  parseVersion,
  specVersions,
  verifyNetworkName,
} from "@tscni/types";
import type { Finding } from "../io.ts";
import { error, isObject, shown, warning } from "./report.ts";

const listKeys = [
  "cniVersion",
  "cniVersions",
  "name",
  "disableCheck",
  "disableGC",
  "loadOnlyInlinedPlugins",
  "plugins",
];

/**
 * What is wrong with a conflist outside of its plugins. libcni reads these keys as they are spelt, unlike those
 * of a plugin. https://www.cni.dev/docs/spec/#configuration-format
 */
export function checkList(raw: unknown): Finding[] {
  if (!isObject(raw)) return [error("", `${shown(raw)} is not an object`)];
  return [
    ...checkName(raw.name),
    ...checkVersions(raw),
    ...["disableCheck", "disableGC", "loadOnlyInlinedPlugins"].flatMap((key) => checkSwitch(key, raw[key])),
    ...checkPluginList(raw),
    ...checkKeys(raw),
  ];
}

export function checkName(name: unknown): Finding[] {
  if (name === undefined) return [error("name", "missing: expected the network's name")];
  if (typeof name !== "string") return [error("name", `${shown(name)} is not a string`)];
  try {
    verifyNetworkName(name);
    return [];
  } catch {
    return [
      error(
        "name",
        `${shown(name)} is not a name of letters, digits, "_", "." and "-" that starts with a letter or digit`,
      ),
    ];
  }
}

const knownVersions = `expected one of ${specVersions.join(", ")}`;

export function checkVersions(raw: Record<string, unknown>): Finding[] {
  const { cniVersion, cniVersions } = raw;
  if (cniVersions === undefined) return checkVersion(cniVersion);
  if (!Array.isArray(cniVersions))
    return [error("cniVersions", `${shown(cniVersions)} is not a list of versions`)];
  const wrong = cniVersions.flatMap((v, i) =>
    typeof v === "string" && parseVersion(v)
      ? []
      : [error(`cniVersions[${i}]`, `${shown(v)} is not a version such as "1.0.0"`)],
  );
  if (wrong.length > 0) return wrong;
  if (
    cniVersions.some((v) => isSpecVersion(v)) ||
    (typeof cniVersion === "string" && isSpecVersion(cniVersion))
  )
    return [];
  return [error("cniVersions", `none of ${shown(cniVersions)} is known: ${knownVersions}`)];
}

function checkVersion(version: unknown): Finding[] {
  if (version === undefined || version === null || version === "")
    return [
      warning(
        "cniVersion",
        "missing, so 0.1.0 is assumed, which has no CHECK, GC or STATUS and one address a family",
      ),
    ];
  if (typeof version !== "string") return [error("cniVersion", `${shown(version)} is not a string`)];
  if (isSpecVersion(version)) return [];
  const newer = atLeast(version, currentVersion)
    ? `; "cniVersions" lets older tools choose an older one`
    : "";
  return [error("cniVersion", `${shown(version)} is not a known version: ${knownVersions}${newer}`)];
}

function checkSwitch(key: string, value: unknown): Finding[] {
  const good = value === undefined || typeof value === "boolean" || /^(true|false)$/i.test(String(value));
  return good ? [] : [error(key, `${shown(value)} is not true or false`)];
}

function checkPluginList(raw: Record<string, unknown>): Finding[] {
  const { plugins, loadOnlyInlinedPlugins } = raw;
  if (plugins === undefined) {
    if (raw.type !== undefined)
      return [
        error(
          "plugins",
          `missing: this is the config of one plugin; put it into "plugins": [...] or call the file .conf`,
        ),
      ];
    const inlined = String(loadOnlyInlinedPlugins).toLowerCase() === "true";
    return inlined
      ? [error("plugins", "missing, and loadOnlyInlinedPlugins says that there are no others")]
      : [];
  }
  if (!Array.isArray(plugins)) return [error("plugins", `${shown(plugins)} is not a list`)];
  return plugins.length === 0 ? [error("plugins", "an empty list: expected at least one plugin")] : [];
}

function checkKeys(raw: Record<string, unknown>): Finding[] {
  return Object.keys(raw)
    .filter((key) => !listKeys.includes(key))
    .map((key) => {
      const meant = nearest(key, listKeys);
      const hint = meant === undefined ? "" : `; did you mean "${meant}"?`;
      return warning(key, `unknown key, read by nobody${hint}`);
    });
}
