import { RsmError } from '../../core/errors.ts'

/** Throws `usage` for an edit without changes, before any request. */
export function refuseEmpty(patch: object, command: string): void {
  if (Object.keys(patch).length === 0)
    throw new RsmError('usage', 'nothing to change', { hint: `rsm ${command} --help` })
}

/** Rephrases a `conflict`: the name is taken; `hint` shows how to see or change its owner. */
export async function refusingTaken<T>(what: string, hint: string, create: Promise<T>): Promise<T> {
  try {
    return await create
  } catch (error) {
    if (!(error instanceof RsmError) || error.code !== 'conflict') throw error
    throw new RsmError('conflict', `a ${what} already exists`, { fields: error.fields, hint, cause: error })
  }
}
