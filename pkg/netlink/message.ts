import type { Attributes, AttributeValues, Entries, Fields, FieldValues, Struct } from "./table.ts";

/** The four operations that rtnetlink numbers from each object's first message type. */
export type Verb = "NEW" | "DEL" | "GET" | "SET";
const verbs: readonly Verb[] = ["NEW", "DEL", "GET", "SET"];
const netfilterVerbs: readonly Verb[] = ["NEW", "GET", "DEL"];

/** How the messages about one kind of object look: RTM_NEWx is `first`, then RTM_DELx, RTM_GETx, RTM_SETx. */
export interface Format<F extends Fields, E extends Entries> {
  readonly noun: string;
  readonly first: number;
  /** Netfilter's operations follow one another in another order. */
  readonly netfilter?: true;
  readonly header: Struct<F>;
  readonly attributes: Attributes<E>;
}

export function format<F extends Fields, const E extends Entries>(
  noun: string,
  first: number,
  header: Struct<F>,
  attributes: Attributes<E>,
): Format<F, E> {
  return { noun, first, header, attributes };
}

export const typeOf = (format: Format<any, any>, verb: Verb): number =>
  format.first + (format.netfilter ? netfilterVerbs : verbs).indexOf(verb);

/** The kernel's name of a message type: RTM_NEWLINK; for netfilter what the message is about: CT_DEL. */
export const nameOf = (format: Format<any, any>, verb: Verb): string =>
  format.netfilter ? `${format.noun}_${verb}` : `RTM_${verb}${format.noun}`;

/** One object as the kernel reports it. */
export interface Message<F extends Fields, E extends Entries> {
  header: FieldValues<F>;
  attributes: AttributeValues<E>;
}

/** The message that a format describes. */
export type MessageOf<T> = T extends Format<infer F, infer E> ? Message<F, E> : never;

/** What takes requests: an open socket, or a batch that sends them together. */
export interface Requester {
  /** `subject` names the object in an error: the link's name, the address. `flags` are NLM_F_CREATE and such. */
  request<F extends Fields, E extends Entries>(
    format: Format<F, E>,
    verb: Verb,
    flags: number,
    header: Partial<FieldValues<F>>,
    attributes: AttributeValues<E>,
    subject: string,
  ): void;
}
