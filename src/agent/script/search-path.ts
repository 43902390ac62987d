/** The PATH of every script, and where the agent finds what it starts for one. */
export const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
