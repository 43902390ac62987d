import type { FileHandle } from 'node:fs/promises'
import type { AuditEntry, AuditFilter } from '../../../../core/audit.ts'
import type { Page } from '../../../../core/protocol/http/common.ts'
import { parseEntry, unreadableAction, unreadableEntry } from '../../audit-entry.ts'
import { pageOf, windowOf } from '../../paging.ts'
import type { ListQuery } from '../../ports/audit-log.ts'
import { type Line, offsetAfter, readBackward } from './log-file.ts'

/**
 * Page, newest first, of a log of `size` bytes whose last entry is `lastId`. After a cursor (`before`) it
 * stops reading once it knows whether there is more, so that all pages together read the log once.
 */
export async function listEntries(
  file: FileHandle,
  size: number,
  lastId: number,
  query: ListQuery,
): Promise<Page<AuditEntry>> {
  const { page: _page, offset: _offset, size: _size, before, ...filter } = query
  const { offset: first, limit: pageSize } = windowOf(query)
  const counted = before === undefined ? Number.POSITIVE_INFINITY : first + pageSize + 1
  const newest = before === undefined ? lastId : Math.min(lastId, before - 1)
  const endAfter = async (id: number) => (id >= lastId ? size : offsetAfter(file, size, id))
  if (Object.values(filter).every((value) => value === undefined)) {
    const total = Math.min(newest, counted)
    if (first >= newest) return pageOf([], total, query)
    return pageOf(await lastEntries(file, await endAfter(newest - first), pageSize), total, query)
  }
  const matches = matcherOf(filter)
  const wanted = needlesOf(filter)
  const content: AuditEntry[] = []
  let total = 0
  for await (const lines of readBackward(file, await endAfter(newest)))
    for (const line of lines) {
      if (!wanted.every((needle) => line.bytes.includes(needle))) continue
      const entry = entryOf(line)
      if (!matches(entry)) continue
      if (total >= first && content.length < pageSize) content.push(entry)
      total++
      if (total === counted) return pageOf(content, total, query)
    }
  return pageOf(content, total, query)
}

async function lastEntries(file: FileHandle, end: number, count: number): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = []
  for await (const lines of readBackward(file, end))
    for (const line of lines) {
      entries.push(entryOf(line))
      if (entries.length === count) return entries
    }
  return entries
}

/** Unreadable lines get the id 0, because theirs is unknown. */
const entryOf = ({ bytes, offset }: Line): AuditEntry =>
  parseEntry(bytes) ?? unreadableEntry(0, { offset, bytes: bytes.length })

export function matcherOf({ action, actor, objectType, objectId, outcome, from, to }: AuditFilter) {
  const [since, until] = [from, to].map((time) => (time === undefined ? null : Date.parse(time)))
  return (entry: AuditEntry): boolean => {
    const at = Date.parse(entry.at)
    return (
      (action === undefined || entry.action === action) &&
      (actor === undefined || entry.actor.name === actor) &&
      (objectType === undefined || entry.object?.type === objectType) &&
      (objectId === undefined || (entry.object !== null && String(entry.object.id) === objectId)) &&
      (outcome === undefined || entry.outcome === outcome) &&
      (since == null || at >= since) &&
      (until == null || at <= until)
    )
  }
}

/** Texts in every matching line, so that most lines need not be parsed. */
export function needlesOf({ action, actor, outcome }: AuditFilter): Buffer[] {
  const needle = (name: string, value: string) => Buffer.from(`"${name}":${JSON.stringify(value)}`)
  const found: Buffer[] = []
  if (action !== undefined && action !== unreadableAction) found.push(needle('action', action))
  if (actor !== undefined) found.push(needle('name', actor))
  if (outcome !== undefined && outcome !== 'FAILED') found.push(needle('outcome', outcome))
  return found
}
