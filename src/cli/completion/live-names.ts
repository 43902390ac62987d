import { statSync } from 'node:fs'
import { type ChosenServer, Contexts, type ServerChoice } from '../contexts/contexts.ts'
import { type Listed, type Lookup, type Named, NamesCache } from './names-cache.ts'

/** Guards against pipes: reading one would block, and consume the command's input. */
function isRegular(path: string | undefined): boolean {
  return path === undefined || path === '' || statSync(path).isFile()
}

function chosen(choice: ServerChoice, env: NodeJS.ProcessEnv): ChosenServer | undefined {
  try {
    const files = [choice.tokenFile, choice.caFile, env['RSM_TOKEN_FILE'], env['RSM_CA_FILE']]
    return files.every(isRegular) ? new Contexts(env).choose(choice, env) : undefined
  } catch {
    return undefined
  }
}

/**
 * Looks up names of the chosen server: fresh ones from the cache, else from the server within `patience` milliseconds, else stale
 * ones from the cache. Never reports a failure.
 */
export function liveNames(
  choice: ServerChoice,
  patience: number,
  env: NodeJS.ProcessEnv = process.env,
): Lookup {
  const server = chosen(choice, env)
  const token = server?.token
  const cache =
    server !== undefined && token !== undefined ? new NamesCache(server.url, token, env) : undefined
  const pending = new Map<Listed, Promise<readonly Named[]>>()

  async function fetched(listed: Listed): Promise<readonly Named[] | undefined> {
    if (server === undefined) return undefined
    const tooLate = new Promise<never>((_, reject) =>
      setTimeout(() => reject(new Error('too late')), patience),
    )
    try {
      const { askServer } = await import('./ask-server.ts')
      const found = await Promise.race([askServer(listed, server), tooLate])
      for (const [each, names] of Object.entries(found)) cache?.write(each as Listed, names)
      return found[listed]
    } catch {
      cache?.failed(listed)
      return undefined
    }
  }

  async function lookUp(listed: Listed): Promise<readonly Named[]> {
    if (cache === undefined) return []
    const kept = cache.read(listed)
    if (kept?.isFresh === true) return kept.names
    return (await fetched(listed)) ?? kept?.names ?? []
  }

  return async (listed) => {
    if (listed === 'contexts') return contextNames(env)
    const known = pending.get(listed) ?? lookUp(listed)
    pending.set(listed, known)
    return known
  }
}

function contextNames(env: NodeJS.ProcessEnv): readonly Named[] {
  try {
    const { current, contexts } = new Contexts(env).list()
    return Object.entries(contexts).map(([name, { url }]) => ({
      name,
      about: name === current ? `${url} (current)` : url,
    }))
  } catch {
    return []
  }
}
