type Level = 'debug' | 'info' | 'warn'

const ready = '/api/ready'

/** Whether agents call it: every few seconds, from every host. */
export const isOfAgents = (route: string): boolean => route.startsWith('/api/agent/')

/**
 * Log level of each request: refusals and failures are for the operator; the audit log has what changes something. A check of
 * readiness is logged only when its answer changes.
 */
export function createRequestLevel(): (route: string, status: number) => Level {
  let wasReady: boolean | null = null
  return (route, status) => {
    if (route === ready) {
      const isReady = status < 400
      if (isReady === wasReady) return 'debug'
      wasReady = isReady
      if (isReady) return 'info'
    }
    if (status >= 500) return 'warn'
    return status < 400 || isOfAgents(route) ? 'debug' : 'info'
  }
}
