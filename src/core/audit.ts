/** How what was audited ended. */
export const auditOutcomes = ['SUCCESS', 'REFUSED', 'FAILED'] as const
export type AuditOutcome = (typeof auditOutcomes)[number]

export const auditActors = ['user', 'agent', 'enrollment', 'system', 'anonymous'] as const
/** Who did it: an agent's `id` and `name` are its agentId; `tokenId` names a user's session or personal token. */
export interface AuditActor {
  type: (typeof auditActors)[number]
  id: number | string | null
  name: string | null
  tokenId: number | null
}

export interface AuditObject {
  type: string
  id: number | string | null
  name: string | null
}

/** Facts about what was done: never a password, key or secret parameter; of a script its first line. */
export type AuditDetail = Record<string, string | number | boolean | null | string[]>

/** One entry of the audit log (contract §3); `hash` chains it to the one before. */
export interface AuditEntry {
  id: number
  at: string
  actor: AuditActor
  ip: string | null
  action: string
  object: AuditObject | null
  outcome: AuditOutcome
  detail: AuditDetail
  hash: string
}

/** Which entries of the log: each field is the exact text, `actor` the actor's name; both times are included. */
export interface AuditFilter {
  action?: string
  actor?: string
  objectType?: string
  objectId?: string
  outcome?: AuditOutcome
  from?: string
  to?: string
}

/** SHA-256, hex, of these pieces one after the other; it comes in as an argument, for core is pure. */
export type Sha256 = (...pieces: (string | Uint8Array)[]) => string

/** The end of the chain: an entry's id and hash. Written `ID:HASH` where people note it. */
export interface AuditHead {
  readonly id: number
  readonly hash: string
}

/** What the first entry is chained to. */
export const beforeFirst: AuditHead = { id: 0, hash: '0'.repeat(64) }

/** What an entry says, before the chain gives it id and hash. */
export type AuditFacts = Omit<AuditEntry, 'id' | 'hash'>

const hashOf = /^,"hash":"([0-9a-f]{64})"\}$/
const suffixLength = ',"hash":""}'.length + 64

/** What stands behind the id in the JSON text of an entry that has no hash yet: `"at":…}`, in one line. */
export function textBehindId({ at, actor, ip, action, object, outcome, detail }: AuditFacts): string {
  return JSON.stringify({ at, actor, ip, action, object, outcome, detail }).slice(1)
}

/**
 * The line of the log that follows `head`, without its newline. The hash covers the hash before it, a newline, and the
 * entry's exact JSON text without its own hash; so a changed byte, a removed or moved entry breaks the chain there.
 */
export function chainEntry(
  head: AuditHead,
  facts: AuditFacts,
  sha256: Sha256,
): { line: string; entry: AuditEntry } {
  const id = head.id + 1
  const text = `{"id":${id},${textBehindId(facts)}`
  const hash = sha256(head.hash, '\n', text)
  return { line: `${text.slice(0, -1)},"hash":"${hash}"}`, entry: { id, ...facts, hash } }
}

export function showHead({ id, hash }: AuditHead): string {
  return `${id}:${hash}`
}

/** A head as `showHead` writes it; undefined for any other text. */
export function parseHead(text: string): AuditHead | undefined {
  const found = /^([1-9]\d{0,15}):([0-9a-f]{64})$/.exec(text.trim().toLowerCase())
  return found === null ? undefined : { id: Number(found[1]), hash: String(found[2]) }
}

/** The first place where a log is not what was written. */
export interface AuditFault {
  kind: 'unreadable' | 'changed' | 'removed' | 'repeated' | 'torn' | 'cut' | 'rewritten'
  /** From 1; null for a fault of the whole log. */
  line: number | null
  id: number | null
  /** Says where and what. */
  sentence: string
}

interface Parsed {
  id: number
  hash: string
  /** Its JSON text without the hash and the closing brace. */
  body: Uint8Array
}

function parseLine(line: Uint8Array): Parsed | null {
  const at = line.length - suffixLength
  if (at < 2) return null
  const ascii = String.fromCharCode(...line.subarray(at))
  const hash = hashOf.exec(ascii)?.[1]
  if (hash === undefined) return null
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(line))
    if (typeof value !== 'object' || value === null || !('id' in value)) return null
    const { id } = value
    return Number.isSafeInteger(id) ? { id: id as number, hash, body: line.subarray(0, at) } : null
  } catch {
    return null
  }
}

/**
 * Checks a log, fed line by line, so that one of any length needs no memory. It stops at the first fault; `head` and
 * `entries` are those of the sound part before it.
 */
export class AuditVerifier {
  entries = 0
  head: AuditHead = beforeFirst
  fault: AuditFault | null = null
  #lines = 0
  readonly #sha256: Sha256
  readonly #noted: AuditHead | null

  /** `noted`: a head that was written down earlier; the log has to contain it. */
  constructor(sha256: Sha256, noted: AuditHead | null = null) {
    this.#sha256 = sha256
    this.#noted = noted
  }

  /** Takes the next line, without its newline; answers whether the log is sound so far. */
  line(bytes: Uint8Array): boolean {
    if (this.fault) return false
    this.#lines++
    const parsed = parseLine(bytes)
    const expected = this.head.id + 1
    if (parsed === null)
      return this.#fail(
        'unreadable',
        null,
        `is not an entry of an audit log; entry ${expected} should be here`,
      )
    const { id, hash, body } = parsed
    if (id > expected) {
      const missing = id - expected === 1 ? `entry ${expected} is` : `entries ${expected} to ${id - 1} are`
      return this.#fail(
        'removed',
        id,
        `holds entry ${id}: ${missing} missing before it, or its id was changed`,
      )
    }
    if (id < expected)
      return this.#fail(
        'repeated',
        id,
        `holds entry ${id} again, or out of its place; entry ${expected} should be here`,
      )
    if (this.#sha256(this.head.hash, '\n', body, '}') !== hash)
      return this.#fail(
        'changed',
        id,
        `does not fit its hash: entry ${id} was changed, or what stood before it`,
      )
    if (this.#noted?.id === id && this.#noted.hash !== hash)
      return this.#fail(
        'rewritten',
        id,
        `holds an entry ${id} with another hash than the head noted: the log was rewritten`,
      )
    this.entries++
    this.head = { id, hash }
    return true
  }

  /** After the last line; `rest` is what follows the last newline. Answers the first fault, or null. */
  end(rest: Uint8Array = new Uint8Array()): AuditFault | null {
    if (this.fault) return this.fault
    if (rest.length > 0) {
      this.#lines++
      this.#fail('torn', null, `is not complete: a write that never ended, or a log that was cut there`)
    } else if (this.entries === 0)
      this.#failWhole('cut', 'the log is empty: not even its first entry is there')
    else if (this.#noted && this.#noted.id > this.head.id)
      this.#failWhole(
        'cut',
        `the log ends at entry ${this.head.id}, the head noted has ${this.#noted.id}: its end was cut off`,
      )
    return this.fault
  }

  #fail(kind: AuditFault['kind'], id: number | null, text: string): false {
    this.fault = { kind, line: this.#lines, id, sentence: `line ${this.#lines} ${text}` }
    return false
  }

  #failWhole(kind: AuditFault['kind'], sentence: string): void {
    this.fault = { kind, line: null, id: null, sentence }
  }
}

/** Most bytes of one line: the server writes none longer, so whatever is longer is no entry. */
const longestLine = 256 * 1024

/** Feeds a verifier with the bytes of a log, however they are cut. */
export async function verifyAudit(
  bytes: AsyncIterable<Uint8Array>,
  verifier: AuditVerifier,
): Promise<AuditFault | null> {
  let rest = new Uint8Array()
  for await (const chunk of bytes) {
    let from = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      if (!verifier.line(joined(rest, chunk.subarray(from, end)))) return verifier.fault
      rest = new Uint8Array()
      from = end + 1
    }
    rest = joined(rest, chunk.subarray(from))
    if (rest.length > longestLine) {
      verifier.line(rest)
      return verifier.fault
    }
  }
  return verifier.end(rest)
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(first.length + second.length)
  both.set(first)
  both.set(second, first.length)
  return both
}
