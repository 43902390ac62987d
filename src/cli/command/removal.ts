import { boolean } from '@oclif/core/flags'
import type { Client } from '../../client/client.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { oneOrMore } from '../flags/checks.ts'
import { confirmRemoval } from '../input/prompt.ts'
import { BaseCommand } from './base-command.ts'
import { doToEach } from './failure.ts'

export const removalFlags = { yes: boolean({ char: 'y', description: 'do not ask' }) }

interface Removal<T, R> {
  /** Singular, for messages: `host`. */
  readonly noun: string
  readonly nameOf: (item: T) => string
  readonly remove: (item: T) => Promise<R>
}

/** Removes the items after one confirmation for all (contract §9); returns the results. */
export async function removeAll<T, R>(
  command: BaseCommand,
  items: readonly T[],
  { noun, nameOf, remove }: Removal<T, R>,
  yes: boolean,
): Promise<R[]> {
  const named = (names: readonly string[]) =>
    names.length === 1
      ? names[0]
      : `${names.length} ${noun}s: ${noun === 'host' ? foldNodeset(names) : names.join(', ')}`
  const names = items.map(nameOf)
  await confirmRemoval(names.length === 1 ? `${noun} ${names[0]}` : `${named(names)}`, yes)
  const done = (removed: readonly T[]) => command.done(`removed ${named(removed.map(nameOf))}`)
  return doToEach(items, { nameOf, json: command.globals.json, done }, remove)
}

interface RemovalCommand<T extends { id: number | string }, R> {
  readonly summary: string
  readonly examples: string[]
  readonly arg: readonly [name: string, description: string]
  readonly noun: string
  readonly nameOf: (item: T) => string
  readonly find: (client: Client, name: string) => Promise<T>
  readonly remove: (client: Client, id: T['id']) => Promise<R>
}

/** A command that removes records by name. Looks up all names first, so that a mistyped one removes nothing. */
export function removalCommand<T extends { id: number | string }, R>({
  summary,
  examples,
  arg: [name, description],
  noun,
  nameOf,
  find,
  remove,
}: RemovalCommand<T, R>) {
  return class Remove extends BaseCommand {
    static override summary = summary
    static override examples = examples
    static override args = { [name]: oneOrMore(description) }
    static override flags = removalFlags

    async run() {
      const { args, flags } = await this.parse(Remove)
      const names = Object.values(args).flat()
      const client = await this.client()
      const found = new Map<T['id'], T>()
      for (const name of names) {
        const item = await find(client, name)
        found.set(item.id, item)
      }
      const what = { noun, nameOf, remove: ({ id }: T) => remove(client, id) }
      const removed = await removeAll(this, [...found.values()], what, flags.yes)
      return names.length === 1 ? removed[0] : removed
    }
  }
}
