import { RsmError } from '../../core/errors.ts'

/** An edit without changes is a usage error, reported before the server is asked. */
export function refuseEmpty(patch: object, command: string): void {
  if (Object.keys(patch).length === 0)
    throw new RsmError('usage', 'nothing to change', { hint: `rsm ${command} --help` })
}

/** Says that a new name is taken, and with which command to see or change what has it. */
export async function refusingTaken<T>(what: string, hint: string, create: Promise<T>): Promise<T> {
  try {
    return await create
  } catch (error) {
    if (!(error instanceof RsmError) || error.code !== 'conflict') throw error
    throw new RsmError('conflict', `a ${what} exists already`, { fields: error.fields, hint, cause: error })
  }
}
