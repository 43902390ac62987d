import { string } from '@oclif/core/args'
import { boolean } from '@oclif/core/flags'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { confirmRemoval } from '../input/prompt.ts'
import { BaseCommand } from './base-command.ts'
import { doToEach } from './each.ts'

export const removalFlags = { yes: boolean({ char: 'y', description: 'do not ask' }) }

/** One or more of what a command removes. */
export const namesToRemove = (description: string) =>
  string({ required: true, multiple: true, ignoreStdin: true, description })

/** What is removed, and how that is called. */
interface Removal<T, R> {
  /** As messages have it: `host`. */
  readonly noun: string
  readonly nameOf: (item: T) => string
  readonly remove: (item: T) => Promise<R>
}

/** A command that removes one or more: it asks once for all (contract §9). */
export abstract class RemovalCommand extends BaseCommand {
  /** Removes them; answers what each came to. */
  protected async removeAll<T, R>(
    items: readonly T[],
    { noun, nameOf, remove }: Removal<T, R>,
    yes: boolean,
  ): Promise<R[]> {
    const several = (names: readonly string[]) =>
      `${names.length} ${noun}s: ${noun === 'host' ? foldNodeset(names) : names.join(', ')}`
    const [only = '', ...others] = items.map(nameOf)
    await confirmRemoval(others.length === 0 ? `${noun} ${only}` : several([only, ...others]), yes)
    const done = (removed: readonly T[]) => {
      const names = removed.map(nameOf)
      this.done(`removed ${names.length === 1 ? names[0] : several(names)}`)
    }
    return doToEach(items, { nameOf, json: this.globals.json, done }, remove)
  }

  /**
   * Removes what is called so, each once; all are looked up first, so that a mistyped name removes nothing. Answers what
   * the only one came to, of several a list.
   */
  protected async removeNamed<T extends { id: number }, R>(
    names: readonly string[],
    { find, ...removal }: Removal<T, R> & { readonly find: (name: string) => Promise<T> },
    yes: boolean,
  ): Promise<R | R[] | undefined> {
    const found = new Map<number, T>()
    for (const name of names) {
      const item = await find(name)
      found.set(item.id, item)
    }
    const removed = await this.removeAll([...found.values()], removal, yes)
    return names.length === 1 ? removed[0] : removed
  }
}
