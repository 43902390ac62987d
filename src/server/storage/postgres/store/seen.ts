import type { AnyRecord, Id, Noun } from '../../records/records.ts'

/** Records as they were before a transaction changed anything, as far as it has read them. */
export class Seen {
  readonly #byNoun = new Map<Noun, Map<Id, AnyRecord | undefined>>()

  note(noun: Noun, id: Id, record: AnyRecord | undefined): void {
    const byId = this.#byNoun.get(noun) ?? new Map<Id, AnyRecord | undefined>()
    if (!byId.has(id)) this.#byNoun.set(noun, byId.set(id, record))
  }

  has(noun: Noun, id: Id): boolean {
    return this.#byNoun.get(noun)?.has(id) === true
  }

  get(noun: Noun, id: Id): AnyRecord | undefined {
    return this.#byNoun.get(noun)?.get(id)
  }
}
