/** Client of Milepost: its SQL functions over JDBC, its HTTP API, and a worker. Depends only on the JDK. */
module dev.milepost {
    requires transitive java.net.http;
    requires transitive java.sql;

    exports dev.milepost;
}
