import { currentVersion, messageOf, specVersions } from "@tscni/types";
import { type Context, callOptions, libcniOf } from "../context.ts";
import { jsonText } from "../json.ts";
import { errorText, messageLines } from "../message.ts";
import { table } from "../style.ts";
import { toolVersion } from "../tool-version.ts";

/** cnitool's own version, or what the named plugins answer to VERSION. */
export async function run(context: Context): Promise<number> {
  return context.words.length === 0 ? own(context) : ofPlugins(context);
}

function own({ io, json }: Context): number {
  const runtime = process.versions.bun ? `Bun ${process.versions.bun}` : `Node.js ${process.versions.node}`;
  if (json)
    io.stdout(
      jsonText({
        version: toolVersion,
        cniVersion: currentVersion,
        supportedVersions: specVersions,
        runtime,
      }),
    );
  else
    io.stdout(
      `cnitool ${toolVersion} (tscni)\nCNI ${currentVersion}, supported: ${specVersions.join(", ")}\n${runtime}, ${process.platform} ${process.arch}\n`,
    );
  return 0;
}

async function ofPlugins(context: Context): Promise<number> {
  const { io, json, style, words } = context;
  const libcni = await libcniOf(context);
  const options = callOptions(context);
  const answers = await Promise.all(
    words.map(async (type) => {
      try {
        return { type, ...(await libcni.getVersionInfo(type, options)) };
      } catch (error) {
        return { type, error: messageOf(error) };
      }
    }),
  );
  const good = answers.filter((a) => "supportedVersions" in a);
  if (json) io.stdout(jsonText(answers));
  else if (good.length > 0)
    io.stdout(
      table(
        ["PLUGIN", "SUPPORTS"],
        good.map((a) => [a.type, a.supportedVersions.join(" ")]),
        style,
      ),
    );
  for (const answer of answers)
    if ("error" in answer) io.stderr(errorText(messageLines(`${answer.type}: ${answer.error}`)));
  return good.length === answers.length ? 0 : 1;
}
