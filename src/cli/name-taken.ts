import { RsmError } from '../core/errors.ts'

/** Says that a new name is taken, and with which command to see or change what has it. */
export async function refusingTaken<T>(what: string, hint: string, create: Promise<T>): Promise<T> {
  try {
    return await create
  } catch (error) {
    if (!(error instanceof RsmError) || error.code !== 'conflict') throw error
    throw new RsmError('conflict', `a ${what} exists already`, { fields: error.fields, hint, cause: error })
  }
}
