import { invalid } from '../../core/errors.ts'
import { maxScriptBytes, type Script, type ScriptQuery } from '../../core/protocol/http/scripts.ts'
import type { ScriptService } from '../../core/services.ts'
import type { UserCaller } from '../caller.ts'
import { sha256 } from '../digest.ts'
import type { ScriptRecord } from '../store/records.ts'
import { type Context, notFound } from './context.ts'
import { patched } from './merge-patch.ts'
import { pageOf, slicePage, storePage } from './paging.ts'

/** The schema counts characters; the limit is in bytes (contract §1). */
export function checkContent(content: string | undefined, field: string): void {
  if (content !== undefined && Buffer.byteLength(content) > maxScriptBytes)
    throw invalid([{ field, message: `must have at most ${maxScriptBytes} bytes` }])
}

export function createScripts(context: Context, caller: UserCaller): ScriptService {
  const { store } = context
  const show = (record: ScriptRecord): Script => ({ ...record })

  async function filtered({ type, category, tag, search }: ScriptQuery): Promise<ScriptRecord[]> {
    const wanted = search?.toLowerCase()
    return (await store.all('scripts')).filter(
      (script) =>
        (type === undefined || script.type === type) &&
        (category === undefined || script.category === category) &&
        (tag === undefined || script.tags.includes(tag)) &&
        (wanted === undefined || `${script.name}\n${script.description}`.toLowerCase().includes(wanted)),
    )
  }

  return {
    async list(query) {
      const { type, category, tag, search } = query
      const plain = type === undefined && category === undefined && tag === undefined && search === undefined
      const { items, total } = plain
        ? await storePage(store, 'scripts', query)
        : slicePage(await filtered(query), query)
      return pageOf(items.map(show), total, query)
    },
    async get(id) {
      const record = await store.get('scripts', id)
      if (!record) throw notFound('script', id)
      return show(record)
    },
    async create(input) {
      checkContent(input.content, 'content')
      const at = context.time()
      return store.transact((tx) => {
        const record: ScriptRecord = {
          id: tx.nextId('scripts'),
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
        return show(record)
      })
    },
    async update(id, patch) {
      checkContent(patch.content, 'content')
      return store.transact(async (tx) => {
        const current = await tx.get('scripts', id)
        if (!current) throw notFound('script', id)
        const content = patch.content ?? current.content
        const next: ScriptRecord = {
          ...current,
          name: patch.name ?? current.name,
          description: patched(patch.description, current.description, ''),
          type: patch.type ?? current.type,
          content,
          timeout: patched(patch.timeout, current.timeout, null),
          tags: patched(patch.tags, current.tags, []),
          category: patched(patch.category, current.category, null),
          version: current.version + 1,
          sha256: sha256(content),
          updatedAt: context.time(),
        }
        tx.put('scripts', next)
        return show(next)
      })
    },
    async remove(id) {
      await store.transact(async (tx) => {
        if (!(await tx.get('scripts', id))) throw notFound('script', id)
        tx.remove('scripts', id)
      })
      return { id }
    },
  }
}
