/** A name that a server knows, and what helps to tell it from others. */
export interface Named {
  readonly name: string
  readonly about: string
}

/** The lists of names that a server is asked for. Groups are what hosts have in common: `tag:role:web`, `os:linux`. */
export type Listed =
  | 'hosts'
  | 'groups'
  | 'clusters'
  | 'scripts'
  | 'schedules'
  | 'uploads'
  | 'tasks'
  | 'users'
  | 'tokens'
  | 'enrollments'
  | 'webhooks'
  | 'recordings'
  | 'sessions'

/** Names as they are looked up; never rejects: what can't be known is an empty list. */
export type Lookup = (listed: Listed | 'contexts') => Promise<readonly Named[]>
