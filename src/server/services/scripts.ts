import { isDeepStrictEqual } from 'node:util'
import { type FieldFault, invalid, RsmError } from '../../core/errors.ts'
import type {
  Script,
  ScriptPatch,
  ScriptSummary,
  ScriptVersionSummary,
} from '../../core/protocol/http/scripts.ts'
import { patternsOf } from '../../core/scripts/declared-params.ts'
import { type DeclaredParam, parseFrontMatter } from '../../core/scripts/front-matter.ts'
import { maxScriptBytes, type ScriptType, scriptFaults } from '../../core/scripts/script-form.ts'
import type { ScriptService } from '../../core/services.ts'
import { sha256 } from '../../disk/digest.ts'
import { pageOf, slicePage, storePage } from '../storage/paging.ts'
import { authors, pick } from '../storage/records/records.ts'
import type { ScriptRecord } from '../storage/records/script.ts'
import { type Context, type ForCallers, notFound, patched } from './context.ts'
import { boundTo, rebind } from './schedules/rights.ts'
import { demandStoredRoom } from './text-quota.ts'

/** Together with the size limit, this bounds the cost of a search. */
const mostScripts = 10_000

/** Checks a script's text. The schema counts characters; the limit is in bytes (contract §1). */
export function contentFaults(type: ScriptType, content: string, field: string): FieldFault[] {
  const messages = scriptFaults(type, content)
  if (Buffer.byteLength(content) > maxScriptBytes) messages.push(`must have at most ${maxScriptBytes} bytes`)
  return messages.map((message) => ({ field, message }))
}

/** Rejects scripts that would not run as written or whose params could not be enforced (docs/use/scripts.md). */
async function checkContent(type: ScriptType, content: string, field: 'content' | 'type'): Promise<void> {
  const faults = contentFaults(type, content, field)
  // Older servers stored invalid front matter, so only new texts must be valid.
  if (field === 'content') faults.push(...(await frontMatterFaults(content)))
  if (faults.length > 0) throw invalid(faults)
}

async function frontMatterFaults(content: string): Promise<FieldFault[]> {
  const { matter, faults } = parseFrontMatter(content)
  const messages = [
    ...faults.map(({ line, column, message }) => `line ${line}, column ${column}: ${message}`),
    ...(await patternsOf(matter.params)).faults,
  ]
  return messages.map((message) => ({ field: 'content', message }))
}

/** Cache of declared params, because a list may show hundreds of long texts. */
const declared = new WeakMap<ScriptRecord, readonly DeclaredParam[]>()

/** Params of a text; if front matter stored by an older server is partly invalid, its valid ones. */
function declaredParams(record: ScriptRecord): DeclaredParam[] {
  const params = declared.get(record) ?? parseFrontMatter(record.content).matter.params
  declared.set(record, params)
  return [...params]
}

function toApi(record: ScriptRecord): Script {
  return { ...head(record), content: record.content, params: declaredParams(record) }
}

function listed(record: ScriptRecord): ScriptSummary {
  return { ...head(record), bytes: Buffer.byteLength(record.content) }
}

const head = (record: ScriptRecord) => ({
  ...pick(record, 'id', 'name', 'description', 'type', 'timeout', 'tags', 'category', 'version', 'sha256'),
  ...pick(record, 'createdBy', 'createdAt', 'updatedAt'),
})

function summaryOf(script: ScriptRecord): ScriptVersionSummary {
  const bytes = Buffer.byteLength(script.content)
  const who = { changedBy: authors.scripts(script), changedAt: script.updatedAt }
  return { ...pick(script, 'version', 'name', 'type', 'sha256'), bytes, ...who }
}

function changed(current: ScriptRecord, patch: ScriptPatch): ScriptRecord {
  const content = patch.content ?? current.content
  return {
    ...current,
    name: patch.name ?? current.name,
    description: patched(patch.description, current.description, ''),
    type: patch.type ?? current.type,
    content,
    timeout: patched(patch.timeout, current.timeout, null),
    tags: patched(patch.tags, current.tags, []),
    category: patched(patch.category, current.category, null),
    sha256: sha256(content),
  }
}

export function createScripts(context: Context): ForCallers<ScriptService> {
  const { store, versions } = context

  /** The script in a version, or null: the current one is in the store, previous ones are in `versions`. */
  async function versionOf(current: ScriptRecord, version: number): Promise<ScriptRecord | null> {
    return version === current.version ? current : versions.read(current.id, version)
  }

  return {
    async list(_, query) {
      const { name, type, category, tag, search } = query
      const where = {
        equals: { name: name?.toLowerCase(), type, category },
        has: { tags: tag === undefined ? undefined : [tag] },
        contains: { fields: ['name', 'description'], text: search },
      } as const
      return storePage<'scripts', ScriptSummary>(store, 'scripts', query, { where }, (items) =>
        items.map((item) => (name === undefined ? listed(item) : toApi(item))),
      )
    },
    async get(_, id) {
      const record = await store.get('scripts', id)
      if (!record) throw notFound('script', id)
      return toApi(record)
    },
    async create(caller, input) {
      await checkContent(input.type, input.content, 'content')
      const at = context.time()
      if ((await store.query('scripts', { limit: 0 })).total >= mostScripts)
        throw new RsmError('conflict', `Limit of ${mostScripts} scripts reached; remove some first`)
      await demandStoredRoom(context, { author: caller.username, record: input })
      return store.transact(async (tx) => {
        const record: ScriptRecord = {
          id: await tx.nextId('scripts'),
          name: input.name,
          description: input.description ?? '',
          type: input.type,
          content: input.content,
          timeout: input.timeout ?? null,
          tags: input.tags ?? [],
          category: input.category ?? null,
          version: 1,
          sha256: sha256(input.content),
          createdBy: caller.username,
          createdAt: at,
          updatedAt: at,
        }
        tx.put('scripts', record)
        return toApi(record)
      })
    },
    async update(caller, id, patch) {
      for (;;) {
        const previous = await store.get('scripts', id)
        if (!previous) throw notFound('script', id)
        const next = changed(previous, patch)
        const isRead = patch.content !== undefined || patch.type !== undefined
        if (isRead)
          await checkContent(next.type, next.content, patch.content === undefined ? 'type' : 'content')
        if (isDeepStrictEqual(next, previous)) return toApi(previous)
        const written = { author: caller.username, record: next }
        await demandStoredRoom(context, written, { author: authors.scripts(previous), record: previous })
        // A read-only store refuses the change anyway, so do not waste disk space on a version.
        if (store.readOnlyReason !== null)
          throw new RsmError('unavailable', store.readOnlyReason, { retryAfter: 5 })
        await versions.save(previous)
        const bound = isRead ? await boundTo(store, caller, id) : []
        const stored = await store.transact(async (tx) => {
          const current = await tx.get('scripts', id)
          if (!current) throw notFound('script', id)
          // A concurrent change made a version, which must be saved first.
          if (current.version !== previous.version) return null
          const changedBy = caller.username
          const version = current.version + 1
          const made = { ...changed(current, patch), version, changedBy, updatedAt: context.time() }
          tx.put('scripts', made)
          await rebind(tx, caller, bound, {
            before: current,
            after: made,
            isWhole: patch.content !== undefined,
          })
          return made
        })
        if (stored) return toApi(stored)
      }
    },
    async versions(_, id, query) {
      const current = await store.get('scripts', id)
      if (!current) throw notFound('script', id)
      const previous = (await versions.list(id)).filter((version) => version < current.version)
      const all = [...previous, current.version]
      const summaries: ScriptVersionSummary[] = []
      // Sequentially, so that a page of long scripts is not in memory at once.
      for (const version of slicePage(all, query)) {
        const script = await versionOf(current, version)
        if (script) summaries.push(summaryOf(script))
      }
      return pageOf(summaries, all.length, query)
    },
    async version(_, id, version) {
      const current = await store.get('scripts', id)
      if (!current) throw notFound('script', id)
      const script = await versionOf(current, version)
      if (!script) throw new RsmError('not_found', `Script ${id} has no version ${version}`)
      return { ...toApi(script), changedBy: authors.scripts(script) }
    },
    async remove(_, id) {
      await store.transact(async (tx) => {
        if (!(await tx.get('scripts', id))) throw notFound('script', id)
        tx.remove('scripts', id)
      })
      await versions.forget(id)
      return { id }
    },
  }
}
