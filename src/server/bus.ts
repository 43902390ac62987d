import type { Change } from '../core/protocol/http/events.ts'
import type { TaskResult, TaskStatus } from '../core/protocol/http/tasks.ts'
import type { UserCaller } from './access/caller.ts'
import type { TerminalRecord } from './seams/records.ts'

/** Every event of the server, by topic. */
export interface BusEvents {
  /** A host of this task has a new result, or the task itself changed; `ended` comes once, with its final status. */
  task: {
    taskId: string
    change: { kind: 'host'; result: TaskResult } | { kind: 'task'; created?: true; ended?: TaskStatus }
  }
  /** Output of this task was written and can be read. */
  output: { taskId: string }
  host: { hostId: number; change: Change }
  /** A cluster's record changed; members that come and go by its selector are not told here. */
  cluster: { clusterId: number; change: Change }
  /** A client begins or ceases to follow a stream of events of this route. */
  stream: { route: string; opened: boolean }
  /** A token ended (logout, revocation, a changed password or role): what hangs on it has to close (contract §2). */
  tokenEnded: { tokenId: number }
  /** An agent's token was revoked, or its host deleted. */
  agentRevoked: { agentId: string }
  /** An agent sent a frame for a task or session that is not its host's (contract §6). */
  foreignFrame: { agentId: string; hostId: number; type: 'task' | 'terminal'; id: string }
  /** An agent refused a message as not signed by this server (reliability S05). */
  distrusted: { agentId: string; hostId: number; taskId: string | null; message: string }
  /** A client took its place at a terminal session, or reads along, or the session ended. */
  terminal: { record: TerminalRecord } & (
    | { kind: 'attached' | 'watched'; caller: UserCaller; ip: string | null }
    | { kind: 'ended' }
  )
  /** The store is a backup that was brought back, as an agent proved: so many tasks are held. */
  restored: { hostId: number; agentId: string; reason: string; tasks: number }
  /** Two agents share this host's identity, or no longer do (reliability F12). */
  duplicateAgent: { hostId: number; duplicate: boolean }
  /** The server stops: what would stay open for long has to end now. */
  stopping: { reason: string }
}
type Topic = keyof BusEvents
type Listener<T extends Topic> = (event: BusEvents[T]) => void

/**
 * The one seam through which events travel. `key` narrows a subscription to one task, token or host; null hears all.
 * Listeners must not throw or block: they note the change and come back later.
 */
export interface Bus {
  publish<T extends Topic>(topic: T, key: string | number, event: BusEvents[T]): void
  /** Answers the way to unsubscribe. */
  subscribe<T extends Topic>(topic: T, key: string | number | null, listener: Listener<T>): () => void
}

/** The bus of a single server. */
export function createBus(): Bus {
  const channels = new Map<string, Set<(event: never) => void>>()
  const channel = (topic: Topic, key: string | number | null) =>
    key === null ? topic : `${topic}\n${typeof key}\n${key}`
  const deliver = (name: string, event: unknown) => {
    const listeners = channels.get(name)
    if (listeners) for (const listener of listeners) listener(event as never)
  }
  return {
    publish(topic, key, event) {
      deliver(channel(topic, key), event)
      deliver(channel(topic, null), event)
    },
    subscribe(topic, key, listener) {
      const name = channel(topic, key)
      const listeners = channels.get(name) ?? new Set()
      channels.set(name, listeners)
      listeners.add(listener)
      return () => {
        listeners.delete(listener)
        if (listeners.size === 0 && channels.get(name) === listeners) channels.delete(name)
      }
    },
  }
}
