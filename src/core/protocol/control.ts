/** What `rsm server confirm-restore` confirmed. */
export interface RestoreConfirmed {
  /** When the restore was noticed, and by what. */
  noticedAt: string
  reason: string
  /** Hosts of tasks that were held: they start now, or were cancelled. */
  executions: number
  tasks: number
  cancelled: boolean
}

/**
 * What commands on the server's own machine ask of it, over the Unix socket in its data directory (contract-2 §11): its
 * file rights are the permission. Each is a POST to `/NAME`, whose body is the input and whose answer is the envelope of
 * the REST API.
 */
export interface ControlCalls {
  'confirm-restore': { input: { cancelPending: boolean }; answer: RestoreConfirmed }
}
export type ControlName = keyof ControlCalls
