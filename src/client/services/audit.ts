import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type AuditEntry,
  type AuditFault,
  type AuditFilter,
  type AuditHead,
  AuditVerifier,
  verifyAudit,
} from '../../core/audit.ts'
import { mendable, RsmError } from '../../core/errors.ts'
import { largestPage } from '../../core/protocol/bounds.ts'
import type { AuditQuery } from '../../core/protocol/http/audit.ts'
import type { Page } from '../../core/protocol/http/common.ts'
import type { AuditService } from '../../core/services.ts'
import { Backoff, pause } from '../../net/backoff.ts'
import type { Api } from '../http/api.ts'

const ndjson = 'application/x-ndjson'

/** The audit log over HTTP: lists, and the log itself to be verified here. */
export interface ClientAuditService extends AuditService {
  /** Lines of entries as stored on the server, oldest first; resumes a lost connection. */
  lines(filter?: AuditFilter): AsyncIterable<Buffer>
}

export function auditOver(api: Api): ClientAuditService {
  return {
    list: (query) => api.page('/api/audit', query),
    lines: (filter = {}) => wholeLines((after) => api.download('/api/audit', ndjson, { ...filter, after })),
  }
}

/**
 * The matching entries, or the newest `limit` of them, each once even if entries are added meanwhile. `totalElements` is
 * the server's count at the beginning.
 */
export async function allEntries(
  list: AuditService['list'],
  query: AuditQuery,
  limit = Number.POSITIVE_INFINITY,
): Promise<Page<AuditEntry>> {
  const size = Math.min(largestPage, limit)
  const content: AuditEntry[] = []
  let total: number | null = null
  for (let cursor: { page: number; before?: number } = { page: 0 }; ; ) {
    const got = await list({ ...query, ...cursor, size })
    total ??= got.totalElements
    const { next = cursor.page + 1 < got.totalPages ? size : null } = got
    const more = next !== null && content.length + got.content.length < limit
    // A damaged line has no id (0): such lines at the end of a page come again with the next page. A tampered id must
    // not lead back to an earlier page.
    const last = got.content.findLastIndex(
      ({ id }) => id > 0 && id < (cursor.before ?? Number.POSITIVE_INFINITY),
    )
    const before = got.content[last]?.id
    content.push(...(more && before !== undefined ? got.content.slice(0, last + 1) : got.content))
    if (!more || got.content.length === 0) {
      const kept = content.slice(0, limit)
      return { content: kept, page: 0, size: kept.length, totalElements: total, totalPages: 1 }
    }
    cursor = before === undefined ? { ...cursor, page: cursor.page + 1 } : { page: 0, before }
  }
}

const places = ['', 'audit.log', join('audit', 'audit.log')]

/** Opens the log at a path: the file itself, its directory, or a server's data directory. */
export async function auditFile(path: string): Promise<AsyncIterable<Uint8Array>> {
  for (const place of places) {
    const file = join(path, place)
    const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
      throw new RsmError('usage', `cannot read ${file}: ${error.message}`, { cause: error })
    })
    if (found?.isFile()) return readable(file)
  }
  throw new RsmError('not_found', `there is no audit log at ${path}`, {
    hint: 'name the file audit.log, or the data directory of the server',
  })
}

async function* readable(file: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(file) as AsyncIterable<Uint8Array>
  } catch (cause) {
    throw new RsmError('usage', `cannot read ${file}: ${(cause as Error).message}`, { cause })
  }
}

function sha256(...pieces: (string | Uint8Array)[]): string {
  const hash = process.getBuiltinModule('node:crypto').createHash('sha256')
  for (const piece of pieces) hash.update(piece)
  return hash.digest('hex')
}

export const auditVerifier = (noted: AuditHead | null = null) => new AuditVerifier(sha256, noted)

/** Verifies a log line by line; `noted` is a head recorded earlier. */
export async function checkAudit(
  bytes: AsyncIterable<Uint8Array>,
  noted: AuditHead | null,
): Promise<{ entries: number; head: AuditHead; fault: AuditFault | null }> {
  const verifier = auditVerifier(noted)
  const fault = await verifyAudit(bytes, verifier)
  return { entries: verifier.entries, head: verifier.head, fault }
}

/** Longest line in bytes: the server writes none longer, so a longer one is not an entry. */
const longestLine = 256 * 1024
const pace = { first: 250, longest: 5_000 }
const verifyHint = 'copy the file audit.log of the data directory, and check it with rsm audit verify --file'
/** Milliseconds for which a lost connection is resumed. */
const resumeFor = 30_000

/** Id of a line that is an entry; null for any other. */
function idOf(line: Buffer): number | null {
  try {
    const { id, hash } = JSON.parse(line.toString('utf8')) as { id?: unknown; hash?: unknown }
    return typeof hash === 'string' && Number.isSafeInteger(id) ? (id as number) : null
  } catch {
    return null
  }
}

/** Id of the last line of a block; null if it is not an entry, after which a download cannot resume. */
function lastIdOf(block: Buffer): number | null {
  return idOf(block.subarray(block.lastIndexOf(10, block.length - 2) + 1, -1))
}

/**
 * Whole lines of the audit log, in blocks. `open` begins a download after an entry; a lost one is resumed there, so
 * each line arrives once. Errors: the server's refusal; `unreachable` if it stays unavailable, or if the connection
 * is lost after a line that is not an entry; `conflict` for a line that is incomplete or too long.
 */
export async function* wholeLines(
  open: (after: number | undefined) => Promise<AsyncIterable<Uint8Array>>,
  retryFor = resumeFor,
): AsyncGenerator<Buffer> {
  const backoff = new Backoff(pace)
  let last: number | null | undefined
  let failingSince: number | undefined
  let torn: Buffer | undefined
  for (;;) {
    try {
      let rest: Buffer = Buffer.alloc(0)
      for await (const chunk of await open(last ?? undefined)) {
        const text = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk])
        const end = text.lastIndexOf(10) + 1
        rest = text.subarray(end)
        if (rest.length > longestLine)
          throw new RsmError('conflict', 'the audit log is damaged: a line is longer than any entry', {
            hint: verifyHint,
          })
        if (end === 0) continue
        const block = text.subarray(0, end)
        yield block
        last = lastIdOf(block)
        failingSince = undefined
        backoff.reset()
      }
      if (rest.length === 0) return
      // The same torn line twice: the log ends there, not the connection.
      if (typeof last !== 'number' || torn?.equals(rest))
        throw new RsmError('conflict', 'the audit log is damaged: its last line is incomplete', {
          hint: verifyHint,
        })
      torn = rest
      throw new RsmError('unreachable', 'the audit log ends within a line')
    } catch (error) {
      // A server that never answered is an error at once, as in any command.
      if (!(error instanceof RsmError) || !mendable(error) || last === undefined) throw error
      if (last === null)
        throw new RsmError(
          'unreachable',
          `${error.message}, and a download cannot resume after a damaged line`,
          {
            cause: error,
          },
        )
      failingSince ??= performance.now()
      if (performance.now() - failingSince >= retryFor) throw error
      await pause(backoff.next())
    }
  }
}

/** Lines of such a block, without their newlines. */
export function* linesOf(block: Uint8Array): Generator<Buffer> {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength)
  for (let from = 0, end = bytes.indexOf(10); end !== -1; from = end + 1, end = bytes.indexOf(10, from))
    yield bytes.subarray(from, end)
}
