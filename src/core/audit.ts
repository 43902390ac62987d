export const auditOutcomes = ['SUCCESS', 'REFUSED', 'FAILED'] as const
export type AuditOutcome = (typeof auditOutcomes)[number]

export const auditActors = ['user', 'agent', 'enrollment', 'system', 'anonymous'] as const
/** An agent's `id` and `name` are its agentId; `tokenId` identifies a user's session or personal token. */
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

/** Facts about an action: never a password, key or secret parameter; for a script, its first line. */
export type AuditDetail = Record<string, string | number | boolean | null | string[]>

/** An entry of the audit log (contract §3); `hash` chains it to the previous one. */
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

/** Filter of the log: each field is the exact text, `actor` the actor's name; both times are inclusive. */
export interface AuditFilter {
  action?: string
  actor?: string
  objectType?: string
  objectId?: string
  outcome?: AuditOutcome
  from?: string
  to?: string
}

/** SHA-256, hex, of the concatenated pieces; passed as an argument, because core is pure. */
export type Sha256 = (...pieces: (string | Uint8Array)[]) => string

/** End of the chain: an entry's id and hash. People note it as `ID:HASH`. */
export interface AuditHead {
  readonly id: number
  readonly hash: string
}

/** Head to which the first entry is chained. */
export const beforeFirst: AuditHead = { id: 0, hash: '0'.repeat(64) }

/** An entry before the chain assigns its id and hash. */
export type AuditFacts = Omit<AuditEntry, 'id' | 'hash'>

const hashOf = /^,"hash":"([0-9a-f]{64})"\}$/
const suffixLength = ',"hash":""}'.length + 64

/** JSON text after the id of an entry that has no hash yet: `"at":…}`, on one line. */
export function textBehindId({ at, actor, ip, action, object, outcome, detail }: AuditFacts): string {
  return JSON.stringify({ at, actor, ip, action, object, outcome, detail }).slice(1)
}

/**
 * The line of the log that follows `head`, without its newline. The hash covers the previous hash, a newline, and the
 * entry's exact JSON text without its own hash. So a changed byte, a removed or a moved entry breaks the chain there.
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

/** Undefined if the text is not one from `showHead`. */
export function parseHead(text: string): AuditHead | undefined {
  const found = /^([1-9]\d{0,15}):([0-9a-f]{64})$/.exec(text.trim().toLowerCase())
  return found === null ? undefined : { id: Number(found[1]), hash: String(found[2]) }
}

export interface AuditFault {
  kind: 'unreadable' | 'changed' | 'removed' | 'repeated' | 'torn' | 'cut' | 'rewritten'
  /** From 1; null for a fault of the whole log. */
  line: number | null
  id: number | null
  sentence: string
}

interface Parsed {
  id: number
  hash: string
  /** JSON text without the hash and the closing brace. */
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

/** Verifies a log line by line, in constant memory, up to the first fault. `head` is that of the intact part. */
export class AuditVerifier {
  entries = 0
  head: AuditHead = beforeFirst
  fault: AuditFault | null = null
  #lines = 0
  readonly #sha256: Sha256
  readonly #noted: AuditHead | null

  /** `noted`: a head recorded earlier, which the log must contain. */
  constructor(sha256: Sha256, noted: AuditHead | null = null) {
    this.#sha256 = sha256
    this.#noted = noted
  }

  /** Verifies the next line, given without its newline; returns whether the log is intact so far. */
  line(bytes: Uint8Array): boolean {
    if (this.fault) return false
    this.#lines++
    const parsed = parseLine(bytes)
    const expected = this.head.id + 1
    if (parsed === null)
      return this.#fail('unreadable', null, `is not an audit log entry; expected entry ${expected}`)
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
      return this.#fail('repeated', id, `holds entry ${id} again or out of order; expected entry ${expected}`)
    if (this.#sha256(this.head.hash, '\n', body, '}') !== hash)
      return this.#fail('changed', id, `does not match its hash: entry ${id} or an earlier one was changed`)
    if (this.#noted?.id === id && this.#noted.hash !== hash)
      return this.#fail(
        'rewritten',
        id,
        `holds entry ${id} with a hash that differs from the head noted: the log was rewritten`,
      )
    this.entries++
    this.head = { id, hash }
    return true
  }

  /** Call after the last line; `rest` is the text after the last newline. Returns the first fault, or null. */
  end(rest: Uint8Array = new Uint8Array()): AuditFault | null {
    if (this.fault) return this.fault
    if (rest.length > 0) {
      this.#lines++
      this.#fail('torn', null, `is incomplete: an interrupted write, or a truncated log`)
    } else if (this.entries === 0) this.#failWhole('cut', 'the log is empty: its first entry is missing')
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

/** Longest line in bytes: the server writes none longer, so a longer one is not an entry. */
const longestLine = 256 * 1024

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
