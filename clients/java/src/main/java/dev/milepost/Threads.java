package dev.milepost;

/** Threads of a worker. */
final class Threads {
    private Threads() {}

    /** A loop that waits. */
    interface Loop {
        void run() throws InterruptedException;
    }

    /** Starts a loop in a daemon thread. */
    static Thread background(String name, Loop loop) {
        Thread thread = daemon(name, () -> {
            try {
                loop.run();
            } catch (InterruptedException unexpected) {
                Thread.currentThread().interrupt();
            }
        });
        thread.start();
        return thread;
    }

    static Thread daemon(String name, Runnable run) {
        var thread = new Thread(run, name);
        thread.setDaemon(true);
        return thread;
    }

    /** Waits until a thread has ended, whatever interrupts. */
    static void join(Thread thread) {
        boolean wasInterrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException interrupted) {
                wasInterrupted = true;
            }
        }
        if (wasInterrupted) Thread.currentThread().interrupt();
    }
}
